"""Other models of travellers behind the follower interface, each in its own file and behind its own extra.

``uxsim`` (extra ``traffic``), ``sumo`` (extra ``sumo``) and ``aequilibrae`` (extra ``aequilibrae``); what simulators
have in common, and how to optimise on their noisy, piecewise constant responses, is in ``traffic``.
"""
