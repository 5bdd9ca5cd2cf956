"""Admission controller: webhooks that prepare pods, and refuse ConfigMaps that the scheduler cannot use."""
