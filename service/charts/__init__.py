"""Pictures of answers as Vega-Lite 6 specifications: plain dicts, drawn here and by browsers."""
