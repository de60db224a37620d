"""Play the poisoning cases of `lab.evals.poisoning`: text of a stranger must not enter a prompt as the owner's."""

from __future__ import annotations

from lab.evals.poisoning import control as say_as_the_owner
from lab.evals.poisoning import measure
from lab.soak.part import Part, Round, Task


def run(task: Task) -> Round:
    """Play every case, in short every eighth."""
    done = Round()
    for result in measure(every=8 if task.short else 1):
        done.count("cases", result.cases)
        done.notes.append(f"{result.category}: {len(result.succeeded)} of {result.cases}")
        for text in result.succeeded:
            done.fail(f"{result.category}: {text}")
    return done


def control(task: Task) -> Round:
    """Let the owner say the same texts: all of them enter a prompt, so the cases look for the right thing."""
    del task
    said, entered = say_as_the_owner()
    done = Round({"texts of the owner": said})
    done.failures = ["a text of the owner entered a prompt"] * (entered if entered == said else 0)
    return done


PART = Part(
    "poisoning",
    "Poisoning: attempts to enter a prompt or to replace the owner's words",
    {"cases": 300},
    run,
    control,
    "the same texts said by the owner, which must enter a prompt",
)
