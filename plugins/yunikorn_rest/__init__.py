"""REST interface of a scheduler: the routes of YuniKorn under `/ws/v1`, read from a core (docs/rest.md)."""
