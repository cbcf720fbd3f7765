/* Put before the C library (LD_PRELOAD): writes a log of all that is done to files under one folder, in order, so
   that the state of the disk after a loss of power can be made again; and can make the disk full after some bytes.

   DISK_FOLDER  the files to watch; DISK_LOG  where to write; DISK_BYTES  how many bytes there is room for.
   A line of the log: operation, path, offset, length; a write is followed by its bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long long room = -1;
static int ready = 0, log_file = -1;
static const char *folder;

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static void start(void) {
    if (ready) return;
    ready = 1;
    folder = getenv("DISK_FOLDER");
    if (getenv("DISK_BYTES")) room = atoll(getenv("DISK_BYTES"));
    if (getenv("DISK_LOG")) log_file = REAL(open)(getenv("DISK_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0644);
}

static int watched_path(const char *path) {
    start();
    return folder && path && !strncmp(path, folder, strlen(folder)) && !strstr(path, "-shm");
}

static int watched(int file, char *path) {
    char link[64];
    start();
    if (!folder || file == log_file) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return watched_path(path);
}

static void tell(const char *what, const char *path, long long offset, const void *data, size_t length) {
    if (log_file < 0) return;
    char head[PATH_MAX + 80];
    int n = snprintf(head, sizeof head, "%s\t%s\t%lld\t%zu\n", what, path, offset, length);
    char *all = malloc(n + length + 1);
    memcpy(all, head, n);
    if (data) memcpy(all + n, data, length);
    size_t total = n + (data ? length : 0);
    if (REAL(write)(log_file, all, total) != (ssize_t)total) abort();
    free(all);
}

static int full(size_t length) {
    if (room < 0) return 0;
    if ((long long)length > room) { errno = ENOSPC; return 1; }
    room -= length;
    return 0;
}

static ssize_t written(int file, const void *data, size_t length, off64_t offset) {
    char path[PATH_MAX];
    int w = watched(file, path);
    if (w && full(length)) return -1;
    ssize_t n = REAL(pwrite64)(file, data, length, offset);
    if (w && n > 0) tell("write", path, offset, data, n);
    return n;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return written(file, data, length, offset); }
ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) { return written(file, data, length, offset); }

ssize_t write(int file, const void *data, size_t length) {
    char path[PATH_MAX];
    int w = watched(file, path);
    if (w && full(length)) return -1;
    off64_t offset = w ? lseek64(file, 0, SEEK_CUR) : 0;
    ssize_t n = REAL(write)(file, data, length);
    if (w && n > 0) tell("write", path, offset, data, n);
    return n;
}

static int cut(int file, off64_t length) {
    char path[PATH_MAX];
    int w = watched(file, path), result = REAL(ftruncate64)(file, length);
    if (w && !result) tell("cut", path, length, NULL, 0);
    return result;
}

int ftruncate(int file, off_t length) { return cut(file, length); }
int ftruncate64(int file, off64_t length) { return cut(file, length); }

int fsync(int file) {
    char path[PATH_MAX];
    int w = watched(file, path), result = REAL(fsync)(file);
    if (w && !result) tell("sync", path, 0, NULL, 0);
    return result;
}

int fdatasync(int file) {
    char path[PATH_MAX];
    int w = watched(file, path), result = REAL(fdatasync)(file);
    if (w && !result) tell("sync", path, 0, NULL, 0);
    return result;
}

int unlink(const char *path) {
    int result = REAL(unlink)(path);
    if (watched_path(path) && !result) tell("unlink", path, 0, NULL, 0);
    return result;
}
