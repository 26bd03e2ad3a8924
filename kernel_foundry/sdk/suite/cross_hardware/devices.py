"""The classes of devices of a matrix: where winners were tuned, and where they can be judged."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.device_class import CLASS_NAME, device_class
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.device_classes.class_choice import choose_classes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDevice:
    """A class of devices."""

    name: str
    """Of the class, see `domain.device_class`; of one that is not there and was never named by its
    class, what its verdicts say."""
    title: str
    """For people: model and driver."""
    language: Language
    asked: str = ""
    """What a request asks for; "": there is no such device now."""
    at_once: int = 1
    """Devices that judge at the same time."""


def devices_there(devices: Sequence[DeviceSpec]) -> tuple[MatrixDevice, ...]:
    """Return the classes of devices that an evaluator has, in their order."""
    of_class: dict[str, list[DeviceSpec]] = {}
    for device in devices:
        of_class.setdefault(device_class(device), []).append(device)
    found = []
    for choice in choose_classes(devices, tuple(of_class)):
        alike = of_class[choice.class_name]
        found.append(
            MatrixDevice(
                name=choice.class_name,
                title=alike[0].model_text,
                language=choice.language,
                asked=choice.device,
                at_once=1 if choice.device == alike[0].id else len(alike),
            )
        )
    return tuple(found)


def home_of(
    verdict: Evaluation, asked: str, language: Language, devices: Sequence[DeviceSpec]
) -> MatrixDevice:
    """Return the class of the device that gave a verdict.

    An id alone does not tell: "cuda:0" is a device of every evaluator. So what the verdict says of
    its device has to agree.

    Args:
        verdict: On a winner.
        asked: What its run asked for: of a fleet a class.
        language: Of the kernel.
        devices: Those that are there.
    """
    said = next((fact.value for fact in verdict.evidence if fact.name == "device"), "")
    there = {device.name: device for device in devices_there(devices)}
    if CLASS_NAME.fullmatch(asked):
        gone = MatrixDevice(name=asked, title=said or asked, language=language)
        return there.get(asked, gone)
    kind = verdict.device.partition(":")[0]
    alike = [d for d in devices if d.kind == kind and said in ("", d.model_text)]
    # One of another name is the same class where all that have the model are of one.
    same = [d for d in alike if d.id == verdict.device] or (alike if said else [])
    classes = {device_class(device) for device in same}
    if len(classes) == 1:
        return there[classes.pop()]
    name = f"{verdict.device}, {said}" if said else verdict.device
    return MatrixDevice(name=name, title=said or verdict.device, language=language)
