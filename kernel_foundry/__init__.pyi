"""The names of the Python SDK, for type checkers: `__init__.py` loads each when it is used."""

from kernel_foundry.errors import AlreadyExistsError as AlreadyExistsError
from kernel_foundry.errors import BackendUnavailableError as BackendUnavailableError
from kernel_foundry.errors import EliteNotFoundError as EliteNotFoundError
from kernel_foundry.errors import FoundryClosedError as FoundryClosedError
from kernel_foundry.errors import InvalidArgumentError as InvalidArgumentError
from kernel_foundry.errors import IsolationUnavailableError as IsolationUnavailableError
from kernel_foundry.errors import KernelFoundryError as KernelFoundryError
from kernel_foundry.errors import LlmConfigurationError as LlmConfigurationError
from kernel_foundry.errors import LlmQuotaError as LlmQuotaError
from kernel_foundry.errors import LlmUnavailableError as LlmUnavailableError
from kernel_foundry.errors import QuotaExceededError as QuotaExceededError
from kernel_foundry.errors import RunHeldError as RunHeldError
from kernel_foundry.errors import RunNotFoundError as RunNotFoundError
from kernel_foundry.errors import ServiceUnavailableError as ServiceUnavailableError
from kernel_foundry.errors import StoreUnavailableError as StoreUnavailableError
from kernel_foundry.errors import TaskBeyondModelsError as TaskBeyondModelsError
from kernel_foundry.errors import TaskInvalidError as TaskInvalidError
from kernel_foundry.errors import TaskRefusedError as TaskRefusedError
from kernel_foundry.sdk.client import Foundry as Foundry
from kernel_foundry.sdk.client import connect as connect
from kernel_foundry.sdk.loop.budget import Budget as Budget
from kernel_foundry.sdk.loop.progress import Event as Event
from kernel_foundry.sdk.loop.progress import VerdictEvent as VerdictEvent
from kernel_foundry.sdk.notebook.evaluation_view import EvaluationView as EvaluationView
from kernel_foundry.sdk.services import Targets as Targets
