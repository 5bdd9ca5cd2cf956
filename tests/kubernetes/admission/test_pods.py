"""Changes of pods and workloads by the admission controller; the rules are those of Apache YuniKorn 1.9."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yunikorn_kubernetes.admission.pods import ReviewedCluster, generated_id, review_pod
from yunikorn_kubernetes.admission.reviews import ObjectKind, Request, ReviewAnswer, Submitter
from yunikorn_kubernetes.shim_settings import AdmissionSettings

Json = dict[str, Any]
USER_INFO = "yunikorn.apache.org/user.info"
JANE = Submitter("jane", ("staff", "system:authenticated"))
CONTROLLER = Submitter("system:serviceaccount:kube-system:job-controller", ("system:serviceaccounts",))
LABEL_VALUE = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
JANE_OWNS = '{"user":"jane","groups":["staff","system:authenticated"]}'


RULES = AdmissionSettings()


@attrs.frozen
class Known:
    """A cluster with annotations of namespaces and priority classes."""

    namespaces: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    classes: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    def namespace_annotations(self, namespace: str) -> Mapping[str, str]:
        return self.namespaces.get(namespace, {})

    def priority_class_annotations(self, name: str) -> Mapping[str, str]:
        return self.classes.get(name, {})


def pod(labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": "p"}
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [], **spec}}


def created(
    content: Json,
    *,
    kind: str = "Pod",
    by: Submitter = JANE,
    namespace: str = "lab",
    rules: AdmissionSettings = RULES,
    cluster: Known | None = None,
) -> ReviewAnswer:
    request = Request("1", ObjectKind(kind=kind), "CREATE", namespace, user_info=by, object=content)
    return review_pod(request, rules, cast(ReviewedCluster, cluster or Known()))


def patched(content: Json, patch: Sequence[Json]) -> Json:
    """Return the object after a patch of `add` operations (RFC 6902)."""
    result = copy.deepcopy(content)
    for operation in patch:
        assert operation["op"] == "add"
        *path, last = [
            name.replace("~1", "/").replace("~0", "~") for name in operation["path"].split("/")[1:]
        ]
        place = result
        for name in path:
            place = place[name]  # the parent has to exist
        place[last] = operation["value"]
    return result


def after(content: Json, **options: Any) -> Json:
    answer = created(content, **options)
    assert answer.allowed, answer.reason
    return patched(content, answer.patch)


def test_pod_without_application_gets_one_of_its_namespace_and_its_owner() -> None:
    result = after(pod())
    assert result["spec"]["schedulerName"] == "yunikorn"
    assert result["metadata"]["labels"] == {
        "yunikorn.apache.org/app-id": "yunikorn-lab-autogen",
        "applicationId": "yunikorn-lab-autogen",
    }
    assert json.loads(result["metadata"]["annotations"][USER_INFO]) == {
        "user": "jane",
        "groups": ["staff", "system:authenticated"],
    }
    assert result["metadata"]["annotations"]["yunikorn.apache.org/allow-preemption"] == "true"


def test_object_without_metadata_can_be_patched() -> None:
    assert after({"spec": {}})["metadata"]["labels"]["applicationId"] == "yunikorn-lab-autogen"


def test_unique_ids_end_with_a_mark_that_the_scheduler_replaces_by_the_uid() -> None:
    result = after(pod(), rules=attrs.evolve(RULES, unique_app_ids=True), namespace="n" * 40)
    assert result["metadata"]["labels"]["applicationId"] == "n" * 26 + "-uniqueautogen"


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({"yunikorn.apache.org/app-id": "a"}, {}, {"applicationId": "a"}),
        ({"applicationId": "a"}, {}, {}),
        ({"spark-app-selector": "a"}, {}, {}),
        ({}, {"yunikorn.apache.org/app-id": "a"}, {}),
        ({"applicationId": "a", "yunikorn.apache.org/queue": "root.q"}, {}, {"queue": "root.q"}),
        ({"applicationId": "a", "queue": "root.q"}, {}, {}),
    ],
)
def test_application_and_queue_of_a_pod_stay(labels: Json, annotations: Json, expected: Json) -> None:
    given_pod = pod(labels, {**annotations, USER_INFO: JANE_OWNS})
    result = after(given_pod, by=CONTROLLER)
    assert result["metadata"]["labels"] == {**labels, **expected}


def test_pods_of_the_scheduler_are_not_changed() -> None:
    assert not created(pod({"app": "yunikorn"})).patch


@pytest.mark.parametrize(
    ("namespace", "annotation", "rules", "selected"),
    [
        ("lab", None, {}, True),
        ("kube-system", None, {}, False),
        ("kube-system", "true", {}, True),
        ("lab", "false", {}, False),
        ("lab", "yes", {}, False),
        ("lab", None, {"process_namespaces": ("^prod-",)}, False),
        ("prod-1", None, {"process_namespaces": ("^prod-",)}, True),
        ("my-prod-1", None, {"process_namespaces": ("prod-",)}, True),
    ],
)
def test_namespaces_are_selected(namespace: str, annotation: str | None, rules: Json, selected: bool) -> None:
    annotations = {} if annotation is None else {"yunikorn.apache.org/namespace.enableYuniKorn": annotation}
    answer = created(
        pod(),
        namespace=namespace,
        rules=attrs.evolve(RULES, **rules),
        cluster=Known({namespace: annotations}),
    )
    assert answer.allowed
    assert bool(answer.patch) is selected


@pytest.mark.parametrize(
    ("annotation", "rules", "labelled"),
    [
        (None, {}, True),
        ("false", {}, False),
        (None, {"no_label_namespaces": ("lab",)}, False),
        ("true", {"no_label_namespaces": ("lab",)}, True),
        (None, {"label_namespaces": ("^other$",)}, False),
    ],
)
def test_labels_are_given_in_selected_namespaces(annotation: str | None, rules: Json, labelled: bool) -> None:
    annotations = {} if annotation is None else {"yunikorn.apache.org/namespace.generateAppId": annotation}
    result = after(pod(), rules=attrs.evolve(RULES, **rules), cluster=Known({"lab": annotations}))
    assert ("labels" in result["metadata"]) is labelled
    assert result["spec"]["schedulerName"] == "yunikorn"


@pytest.mark.parametrize(
    ("given_annotation", "of_class", "expected"),
    [
        (None, None, "true"),
        (None, "false", "false"),
        (None, "true", "true"),
        ("true", "false", "true"),
        ("false", "true", "false"),
        ("perhaps", "false", "false"),
    ],
)
def test_preemption_is_allowed_unless_the_priority_class_excludes_it(
    given_annotation: str | None, of_class: str | None, expected: str
) -> None:
    name = "yunikorn.apache.org/allow-preemption"
    classes = {"batch": {} if of_class is None else {name: of_class}}
    content = pod(
        None, None if given_annotation is None else {name: given_annotation}, priorityClassName="batch"
    )
    assert after(content, cluster=Known({}, classes))["metadata"]["annotations"][name] == expected


class TestOwners:
    def test_users_cannot_name_another_owner(self) -> None:
        answer = created(pod(None, {USER_INFO: '{"user": "root"}'}))
        assert not answer.allowed
        assert "user jane (groups: staff, system:authenticated) may not set" in answer.reason
        assert "externalUsers" in answer.reason

    def test_not_even_in_namespaces_of_other_schedulers(self) -> None:
        assert not created(pod(None, {USER_INFO: '{"user": "root"}'}), namespace="kube-system").allowed

    def test_controllers_can(self) -> None:
        content = pod(None, {USER_INFO: JANE_OWNS})
        assert after(content, by=CONTROLLER)["metadata"]["annotations"][USER_INFO] == JANE_OWNS

    def test_controllers_cannot_where_they_are_not_trusted(self) -> None:
        rules = attrs.evolve(RULES, trust_controllers=False)
        assert not created(pod(None, {USER_INFO: JANE_OWNS}), by=CONTROLLER, rules=rules).allowed

    @pytest.mark.parametrize("rules", [{"external_users": ("^jane$",)}, {"external_groups": ("^staff$",)}])
    def test_trusted_users_can(self, rules: Json) -> None:
        content = pod(None, {USER_INFO: '{"user": "root", "groups": ["wheel"]}'})
        assert after(content, rules=attrs.evolve(RULES, **rules))["metadata"]["annotations"][USER_INFO]

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("{", "no JSON"),
            ("[]", "expected an object"),
            ("{}", "'user' has to be a name"),
            ('{"user": 5}', "'user' has to be a name"),
            ('{"user": "a", "groups": "b"}', "'groups' has to be a list"),
            ("[" * 100_000, "no JSON"),
        ],
    )
    def test_owners_that_cannot_be_read_are_refused(self, text: str, part: str) -> None:
        answer = created(pod(None, {USER_INFO: text}), by=CONTROLLER)
        assert not answer.allowed
        assert part in answer.reason

    def test_nothing_is_checked_or_written_without_authentication(self) -> None:
        rules = attrs.evolve(RULES, bypass_auth=True)
        assert USER_INFO not in after(pod(), rules=rules)["metadata"]["annotations"]
        assert created(pod(None, {USER_INFO: "nonsense"}), rules=rules).allowed


class TestUpdates:
    def review(
        self,
        before: Json,
        now: Json,
        namespace: str = "lab",
        kind: str = "Pod",
        by: Submitter = JANE,
        rules: AdmissionSettings = RULES,
    ) -> ReviewAnswer:
        request = Request(
            "1", ObjectKind(kind=kind), "UPDATE", namespace, user_info=by, object=now, old_object=before
        )
        return review_pod(request, rules, cast(ReviewedCluster, Known()))

    def test_owner_of_a_pod_cannot_change(self) -> None:
        owned = pod(None, {USER_INFO: JANE_OWNS})
        for now in (pod(), pod(None, {USER_INFO: '{"user": "root"}'})):
            assert "cannot be changed" in self.review(owned, now).reason
        assert "cannot be changed" in self.review(pod(), owned).reason

    def test_a_label_that_the_update_adds_does_not_free_the_owner(self) -> None:
        owned = pod(None, {USER_INFO: JANE_OWNS})
        forged = pod({"app": "yunikorn"}, {USER_INFO: '{"user": "root"}'})
        assert "cannot be changed" in self.review(owned, forged).reason

    def test_a_label_that_the_update_removes_does_not_free_the_owner(self) -> None:
        rules = attrs.evolve(RULES, no_label_namespaces=("lab",))
        owned = pod({"applicationId": "a"}, {USER_INFO: JANE_OWNS})
        forged = pod(None, {USER_INFO: '{"user": "root"}'})
        assert "cannot be changed" in self.review(owned, forged, rules=rules).reason

    @pytest.mark.parametrize(
        ("labels", "annotations", "spec", "namespace"),
        [
            ({}, {"yunikorn.apache.org/app-id": "a"}, {}, "lab"),
            ({}, {}, {}, "lab"),
            ({}, {}, {"schedulerName": "yunikorn"}, "lab"),
            ({"applicationId": "a"}, {}, {"schedulerName": "yunikorn"}, "kube-system"),
            ({}, {}, {"schedulerName": "yunikorn"}, "kube-system"),
        ],
    )
    def test_owner_of_a_pod_without_labels_cannot_change(
        self, labels: Json, annotations: Json, spec: Json, namespace: str
    ) -> None:
        rules = attrs.evolve(RULES, no_label_namespaces=("lab",))
        owned = pod(labels, {**annotations, USER_INFO: JANE_OWNS}, **spec)
        forged = pod(labels, {**annotations, USER_INFO: '{"user": "root"}'}, **spec)
        anonymous = pod(labels, annotations, **spec)
        for before, now in ((owned, forged), (owned, anonymous), (anonymous, forged)):
            assert not self.review(before, now, namespace, rules=rules).allowed
        assert self.review(owned, owned, namespace, rules=rules).allowed

    def test_owner_of_a_pod_of_the_scheduler_is_checked_as_for_a_new_pod(self) -> None:
        own = {"app": "yunikorn"}
        now = pod(own, {USER_INFO: '{"user": "root"}'})
        assert "may not set the annotation" in self.review(pod(own), now).reason
        assert self.review(pod(own), now, by=CONTROLLER).allowed
        assert self.review(now, now).allowed
        assert self.review(now, pod(own)).allowed

    def test_everything_else_can(self) -> None:
        owned = pod({"a": "b"}, {USER_INFO: JANE_OWNS})
        assert self.review(owned, pod({"a": "c"}, {USER_INFO: JANE_OWNS})).allowed

    def test_other_namespaces_and_kinds_are_left_alone(self) -> None:
        owned = pod(None, {USER_INFO: JANE_OWNS})
        assert self.review(owned, pod(), "kube-system").allowed
        assert self.review(pod({"applicationId": "a"}), owned, "kube-system").allowed
        assert self.review(owned, pod(), kind="PodGroup").allowed


def workload(owner: str | None = None, *, kind: str = "Deployment", **spec: Any) -> Json:
    """Return a workload with this owner in its template."""
    template = pod(None, None if owner is None else {USER_INFO: owner}, **spec)
    if kind == "CronJob":
        return {"metadata": {}, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    return {"metadata": {}, "spec": {"template": template}}


BOB = Submitter("bob", ("staff",))
ROOT_OWNS = '{"user":"root"}'
BOB_OWNS = '{"user":"bob","groups":["staff"]}'


class TestUpdatedWorkloads:
    def review(
        self,
        before: Json,
        now: Json,
        *,
        kind: str = "Deployment",
        namespace: str = "lab",
        by: Submitter = BOB,
        rules: AdmissionSettings = RULES,
    ) -> ReviewAnswer:
        request = Request(
            "1", ObjectKind(kind=kind), "UPDATE", namespace, user_info=by, object=now, old_object=before
        )
        return review_pod(request, rules, cast(ReviewedCluster, Known()))

    @pytest.mark.parametrize(
        "kind",
        [
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
            "DaemonSet",
            "Job",
            "CronJob",
            "ReplicationController",
        ],
    )
    def test_users_cannot_name_another_owner(self, kind: str) -> None:
        forged = workload(ROOT_OWNS, kind=kind)
        for owner in None, JANE_OWNS:
            answer = self.review(workload(owner, kind=kind), forged, kind=kind)
            assert not answer.allowed
            assert "user bob (groups: staff) may not set" in answer.reason
        assert not created(forged, kind=kind).allowed

    def test_those_who_may_name_an_owner_can(self) -> None:
        before, now = workload(JANE_OWNS), workload(ROOT_OWNS)
        assert self.review(before, now, by=CONTROLLER).allowed
        rules = attrs.evolve(RULES, external_users=("^bob$",))
        assert self.review(before, now, rules=rules).allowed
        assert not self.review(before, workload("{"), rules=rules).allowed
        assert self.review(before, now, rules=attrs.evolve(RULES, bypass_auth=True)).allowed

    def test_an_update_without_the_owner_is_that_of_its_submitter(self) -> None:
        for owner, by in (BOB_OWNS, BOB), (JANE_OWNS, JANE):
            answer = self.review(workload(JANE_OWNS), workload(), by=by)
            assert answer.allowed
            assert patched(workload(), answer.patch) == workload(owner)

    def test_an_update_that_keeps_the_owner_is_left_alone(self) -> None:
        for owner in JANE_OWNS, None:
            answer = self.review(workload(owner), workload(owner, priorityClassName="high"))
            assert answer.allowed
            assert not answer.patch

    def test_replica_sets_are_left_to_controllers(self) -> None:
        answer = self.review(workload(JANE_OWNS), workload(), kind="ReplicaSet", by=CONTROLLER)
        assert answer.allowed
        assert not answer.patch

    def test_an_owner_is_checked_when_the_template_turns_to_this_scheduler(self) -> None:
        other, ours = workload(ROOT_OWNS), workload(ROOT_OWNS, schedulerName="yunikorn")
        namespace = "kube-system"
        assert created(other, kind="Deployment", namespace=namespace, by=BOB).allowed
        assert not self.review(other, ours, namespace=namespace).allowed
        assert self.review(ours, ours, namespace=namespace).allowed
        assert self.review(ours, other, namespace=namespace).allowed
        assert self.review(workload(), other, namespace=namespace).allowed


class TestWorkloads:
    @pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
    def test_owner_goes_into_the_template(self, kind: str) -> None:
        content: Json = {"metadata": {"name": "w"}, "spec": {"template": {"metadata": {}, "spec": {}}}}
        result = after(content, kind=kind)
        assert result["spec"]["template"]["metadata"] == {"annotations": {USER_INFO: JANE_OWNS}}
        assert "schedulerName" not in result["spec"]["template"]["spec"]

    def test_owner_goes_into_the_template_of_the_jobs_of_a_cron_job(self) -> None:
        content: Json = {"metadata": {}, "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}
        result = after(content, kind="CronJob")
        metadata = result["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
        assert metadata == {"annotations": {USER_INFO: JANE_OWNS}}

    def test_replica_sets_of_controllers_are_not_changed(self) -> None:
        content: Json = {"metadata": {}, "spec": {"template": {"metadata": {}}}}
        assert created(content, kind="ReplicaSet", by=CONTROLLER).patch == ()

    def test_users_cannot_name_another_owner_in_a_template(self) -> None:
        content: Json = {"spec": {"template": {"metadata": {"annotations": {USER_INFO: '{"user": "root"}'}}}}}
        assert not created(content, kind="Job").allowed

    def test_not_even_in_one_without_labels_whose_pods_name_this_scheduler(self) -> None:
        forged = {"metadata": {"annotations": {USER_INFO: '{"user": "root"}'}}}
        rules = attrs.evolve(RULES, no_label_namespaces=("lab",))
        assert not created({"spec": {"template": forged}}, kind="Job", rules=rules).allowed
        ours: Json = {**forged, "spec": {"schedulerName": "yunikorn"}}
        assert not created({"spec": {"template": ours}}, kind="Job", namespace="kube-system").allowed
        assert created({"spec": {"template": forged}}, kind="Job", namespace="kube-system").allowed

    def test_owner_goes_into_the_template_in_namespaces_without_labels(self) -> None:
        content: Json = {"spec": {"template": {"metadata": {}}}}
        rules = attrs.evolve(RULES, no_label_namespaces=("lab",))
        result = after(content, kind="Job", rules=rules)
        assert result["spec"]["template"]["metadata"] == {"annotations": {USER_INFO: JANE_OWNS}}

    def test_other_namespaces_and_kinds_are_left_alone(self) -> None:
        content: Json = {"spec": {"template": {"metadata": {}}}}
        assert created(content, kind="Job", namespace="kube-system").patch == ()
        assert created(content, kind="PodGroup").patch == ()


@given(namespace=st.from_regex("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True), unique=st.booleans())
@example(namespace="n" * 53, unique=False)
def test_generated_ids_are_labels(namespace: str, unique: bool) -> None:
    assert LABEL_VALUE.fullmatch(generated_id(namespace, unique=unique))


keys = st.sampled_from(["a/b", "a~b", "applicationId", "yunikorn.apache.org/app-id", "queue"])


@given(
    labels=st.none() | st.dictionaries(keys, st.sampled_from(["", "x", "y"])),
    annotations=st.none() | st.dictionaries(st.sampled_from(["a/b", "c~d"]), st.text(max_size=3)),
)
def test_patches_add_and_never_lose(labels: Json | None, annotations: Json | None) -> None:
    result = after(pod(labels, annotations))["metadata"]
    for name, value in (annotations or {}).items():
        assert result["annotations"][name] == value
    for name in labels or {}:
        assert name in result["labels"]
    assert any(result["labels"].get(one) for one in ("applicationId", "yunikorn.apache.org/app-id"))
