"""Reports of the doctor in responses."""

from mainspring.api.models.base import Answer
from mainspring.domain.checks.model import Finding, Fix, Report, Severity


class FindingModel(Answer):
    """One thing that a check has found, what it means, and a command or SQL to copy."""

    id: str
    severity: Severity
    fact: str
    meaning: str
    advice: str

    @classmethod
    def of(cls, finding: Finding) -> "FindingModel":
        return cls.model_construct(
            id=finding.id,
            severity=finding.severity,
            fact=finding.fact,
            meaning=finding.meaning,
            advice=finding.advice,
        )


class FixModel(Answer):
    """One thing that was fixed, or that could not be."""

    id: str
    action: str
    is_done: bool

    @classmethod
    def of(cls, fix: Fix) -> "FixModel":
        return cls.model_construct(id=fix.id, action=fix.action, is_done=fix.is_done)


class ReportModel(Answer):
    """What was found, worst first, by which checks, and what was fixed before."""

    checked: list[str]
    findings: list[FindingModel]
    fixes: list[FixModel]

    @classmethod
    def of(cls, report: Report) -> "ReportModel":
        return cls.model_construct(
            checked=list(report.checked),
            findings=[FindingModel.of(each) for each in report.findings],
            fixes=[FixModel.of(each) for each in report.fixes],
        )
