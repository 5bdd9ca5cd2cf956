"""Plugin machinery: the kinds of plugin, and how plugins are found, checked, named and made."""
