"""The paper's figures, one script each; ``infocap reproduce`` runs them."""
