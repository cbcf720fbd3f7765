"""The page of verdicts."""
