"""The Common Expression Language (CEL) of device selectors, checked and evaluated within bounds."""
