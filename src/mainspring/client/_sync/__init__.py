"""The blocking client, written by `tools/write_sync_client.py`: change `_async`."""
