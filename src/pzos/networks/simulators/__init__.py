"""Other models of travellers behind the follower interface, each in its own file and behind its own extra.

``uxsim`` (extra ``traffic``), ``sumo`` (extra ``sumo``) and ``aequilibrae`` (extra ``aequilibrae``); what simulators
have in common is in ``traffic``. Their responses are noisy and piecewise constant: probe with a radius of seconds of
toll, not hundredths, use the same seeds for all queries (common random numbers), average over a few of them, and judge
the result on seeds the optimiser never saw.
"""
