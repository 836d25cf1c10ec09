"""The client as it is written: async. `tools/write_sync_client.py` makes the blocking one of it."""
