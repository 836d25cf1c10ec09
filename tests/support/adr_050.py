"""The code samples of ADR-050 of the knowledge graph, as printed there, but for their imports, type
hints that a checker asks for, and a client that reads from a dict."""

import logging
from abc import ABC, abstractmethod
from typing import Any

from mainspring import Launcher

logger = logging.getLogger(__name__)

GRAPH: dict[str, Any] = {}


class AGEClient:
    def get_vocabulary_categories(self) -> list[dict[str, Any]]:
        return list(GRAPH["categories"])

    def get_vocabulary_stats(self) -> dict[str, int]:
        return dict(GRAPH["stats"])


class JobLauncher(Launcher, ABC):
    """Base class for scheduled job launchers; in the ADR it has no base but ABC."""

    def __init__(self, job_queue: Any, max_retries: int = 5) -> None:
        self.job_queue = job_queue
        self.max_retries = max_retries

    @abstractmethod
    def check_conditions(self) -> bool: ...

    @abstractmethod
    def prepare_job_data(self) -> dict[str, Any]: ...

    @abstractmethod
    def get_job_type(self) -> str: ...

    def launch(self) -> str | None:
        # Let exceptions bubble up - scheduler handles them
        if not self.check_conditions():
            logger.info(f"⏭️  {self.__class__.__name__}: Conditions not met, skipping")
            return None  # Normal skip, not a failure

        logger.info(f"✓  {self.__class__.__name__}: Conditions met, preparing job")

        # Let exceptions bubble up
        job_data = self.prepare_job_data()

        # Let exceptions bubble up
        job_id: str | None = self.job_queue.enqueue(job_type=self.get_job_type(), job_data=job_data)

        # Mark as system job
        if job_id:
            self.job_queue.update_job(
                job_id,
                {
                    "is_system_job": True,
                    "job_source": "scheduled_task",
                    "created_by": f"system:scheduler:{self.__class__.__name__}",
                },
            )

        logger.info(f"✅ {self.__class__.__name__}: Enqueued job {job_id}")
        return job_id


class CategoryRefreshLauncher(JobLauncher):
    """Automatically refresh vocabulary categories with llm_generated entries."""

    def check_conditions(self) -> bool:
        """Check if any categories have llm_generated entries"""
        client = AGEClient()
        categories = client.get_vocabulary_categories()

        for category in categories:
            if "llm_generated" in category.get("relationship_types", []):
                return True

        return False

    def prepare_job_data(self) -> dict[str, Any]:
        """Prepare data for vocab refresh worker"""
        return {"operation": "refresh_categories", "auto_mode": True, "filter": "llm_generated"}

    def get_job_type(self) -> str:
        return "vocab_refresh"


class VocabConsolidationLauncher(JobLauncher):
    """Automatically consolidate vocabulary based on hysteresis curve."""

    def check_conditions(self) -> bool:
        """Check if vocabulary spread exceeds consolidation threshold"""
        client = AGEClient()
        stats = client.get_vocabulary_stats()

        active_types = stats["active_types"]
        inactive_types = stats["inactive_types"]

        if active_types > 50:
            inactive_ratio = inactive_types / active_types

            # Upper threshold: consolidate
            if inactive_ratio > 0.20:
                return True

            # Lower threshold: prevent thrashing
            if inactive_ratio < 0.10:
                return False

        return False

    def prepare_job_data(self) -> dict[str, Any]:
        """Prepare data for vocab consolidation worker"""
        return {"operation": "consolidate", "auto_mode": True, "strategy": "hysteresis"}

    def get_job_type(self) -> str:
        return "vocab_consolidate"


def run_vocab_refresh_worker(
    job_data: dict[str, Any], job_id: str, job_queue: Any
) -> dict[str, Any]:
    """A worker with the signature that the ADR asks of all."""
    job_queue.update_job(job_id, {"progress": 50, "message": "refreshing"})
    job = job_queue.get_job(job_id)
    return {"job_id": job_id, "is_system_job": job["is_system_job"], **job_data}
