"""Explanations of pending requests, computed on demand; nothing that decides depends on them."""
