"""Other models of travellers behind the follower interface, each in its own file and behind its own extra.

``uxsim`` (extra ``uxsim``), ``sumo`` (extra ``sumo``) and ``aequilibrae`` (extra ``aequilibrae``). Their responses
are noisy or piecewise constant: take a radius of seconds of toll, not hundredths, use the same seeds for the
queries of one step (common random numbers), and judge the result on seeds the optimiser never saw.
"""
