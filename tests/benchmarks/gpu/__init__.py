"""Times training and decoding on one GPU, each part in a process of its own: see ``__main__.py``."""
