"""The default plugins that act: placement rules, predicates, event sinks, user-group resolvers.

Each module is a complete plugin and a tutorial for its kind. They import nothing of the scheduler but
`yunikorn.api`, as any third party's plugin would.
"""
