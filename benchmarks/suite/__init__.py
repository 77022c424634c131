"""Followers nobody here wrote: public simulators as followers, our methods and peers on equal terms.

    pzos bench --suite real --out results          # every family that is installed; goes on where it was killed
    pzos bench --suite real --list                 # the families, and why one is left out
    pzos bench --suite real --out results --families pypsa-linear --methods default cobyqa --instances 1 --queries 50

**To add a follower**, write one file into ``suite/followers/`` that ends with ``FAMILIES = [Family(...), ...]``
(:class:`suite.family.Family` says what each field is). Nothing else is to be told: the folder is listed. Rules:

* the simulator's package is imported inside functions only, so that the file can be read where it is missing; then the
  family is skipped with a reason that names ``package`` and the extra of ``pyproject.toml`` that has it;
* ``make(seed)`` returns a :class:`pzos.Problem`, always the same one for the same seed: seeds 0, 1, ... are reported,
  100 and above are for fixing constants. Everything that differs between instances (costs, loads, networks) comes from
  ``numpy.random.default_rng(seed)``. Its domain is a box or another set with finite bounds wherever there is one, for
  peers are told no other scale;
* the follower is a function x -> y, or ``pzos.seeded(...)`` where it is noisy (then ``judged_by`` draws, averaged, say
  what a point is worth). It raises ``pzos.FollowerFailure`` where the simulator fails. Its answers are kept on disk by
  the bits of x (:class:`pzos.Cached`): nothing is simulated twice, also by another method;
* f(x, y) is known in full with exact partial gradients (``pzos.leader_from_functions``);
* a test in ``suite/test_suite.py`` finds the family by itself: gradients, domain, repeated answers.

**To add a method**, write a function (door, seed) -> None into ``suite/methods.py`` and name it in ``METHODS``: it asks
``door.at(x)`` for (x moved into the domain, y*(x)) or ``door.cost(x)`` for F, until ``Spent`` is raised.
"""
