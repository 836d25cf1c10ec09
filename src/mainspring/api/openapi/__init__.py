"""The description of the API: an OpenAPI document made from the routes and their models.

routes ─ FastAPI ─▶ document.py ─┬─ fields.py      what each field means, with an example
                                 ├─ operations.py  what each operation answers
                                 └─ examples.py    whole bodies from the examples of fields
"""
