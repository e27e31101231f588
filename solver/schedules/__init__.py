"""Schedules: which rank runs which stages, and in which order it runs their passes.

A generator gives one list of actions per rank. An action is (kind, stage, microbatch); the kinds are F forward,
B whole backward, I input gradient and W weight gradient. ``single`` holds the schedules with one stage on every rank,
``looped`` those that lay the stages around the ranks several times, ``v_shaped`` those that lay them there and back.
"""
