"""Default placement rules, predicates, event sinks and user-group resolvers.

Each module is a complete plugin and an example for its kind. Like third-party plugins, they import only
`yunikorn.api` of the scheduler.
"""
