"""The page at /docs: the OpenAPI document as HTML, written by the server.

    document ─▶ page.py ─┬─ operations.py  one operation: parameters, bodies, answers, curl
                         └─ schemas.py     types, tables of fields, examples

It is whole without a script; `reference.js` adds a search field and buttons that copy.
"""
