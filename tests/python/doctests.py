# SPDX-License-Identifier: MIT
"""Runs the examples in gpupart.py's docstrings."""
import doctest
import os

from tap import ROOT, done, ok

import gpupart

nr_examples = 0
for test in doctest.DocTestFinder(exclude_empty=True).find(gpupart, "gpupart"):
    said = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    nr_examples += result.attempted
    if result.attempted:
        ok(not result.failed, f"{test.name}: {result.attempted} examples")
        for line in "".join(said).splitlines():
            print("#", line)
for name, least in (("python.md", 8), ("inference.md", 8)):
    said = []
    page = os.path.join(ROOT, "Documentation/user", name)
    with open(page, encoding="utf-8") as f:
        test = doctest.DocTestParser().get_doctest(f.read(), {}, name, page, 0)
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    ok(result.attempted >= least and not result.failed, f"{name}: {result.attempted} examples")
    for line in "".join(said).splitlines():
        print("#", line)
ok(nr_examples >= 25, f"{nr_examples} examples were tried")
public = [getattr(gpupart, name) for name in gpupart.__all__]
members = [(thing, name) for thing in public if isinstance(thing, type)
           for name, value in vars(thing).items()
           if not name.startswith("_") and (callable(value) or isinstance(value, property))]
missing = [f"{t.__name__}.{n}" for t, n in members if not getattr(t, n).__doc__]
missing += [thing.__name__ for thing in public if not thing.__doc__]
ok(len(members) > 15 and not missing, f"what is public says what it does: {missing}")
ok(sorted(name for name in dir(gpupart) if name[0] != "_") == sorted(gpupart.__all__),
   "dir() shows what is public, and no module that it uses")
done()
