"""How plans are found: costs, event graph, formulation, cuts, ranking and the evaluator that checks every answer."""
