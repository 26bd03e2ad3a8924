"""Databases under the services: opened, migrated, and their failures as ours."""
