#include "scheduler/cluster/worker_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/build_version.h"

namespace troupe {
namespace {

// Of what a worker says of itself and tables show.
constexpr size_t kShownBytesMax = 256;

BuildVersion BuildOf(const Register& request) {
  if (request.has_build()) return request.build();
  // Before protocol 16 a worker said its version only.
  BuildVersion build;
  build.set_protocol(request.protocol_version());
  build.set_oldest_protocol(request.protocol_version());
  return build;
}

}  // namespace

absl::StatusOr<WorkerId> WorkerTable::Add(const Register& request,
                                          absl::Time now) {
  const std::string& name = request.worker().name();
  RETURN_IF_ERROR(CheckCanTalk(
      absl::StrCat("the worker ", OneLine(name, limits_.worker_name_bytes_max)),
      BuildOf(request)));
  if (name.empty()) {
    return absl::InvalidArgumentError("worker.name: a worker needs a name");
  }
  if (!IsOneLine(name, limits_.worker_name_bytes_max)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker.name: ", OneLine(name, limits_.worker_name_bytes_max),
        " is no name; use at most ", limits_.worker_name_bytes_max,
        " bytes, all printable"));
  }
  if (request.worker().ByteSizeLong() > limits_.worker_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: what ", name, " says of itself is ",
                     request.worker().ByteSizeLong(), " bytes, more than ",
                     limits_.worker_bytes_max));
  }
  if (const auto it = alive_by_name_.find(name); it != alive_by_name_.end()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a live worker has the name ", name, " (pid ",
        Find(it->second)->status.pid(), "); give this one another name"));
  }
  if (alive_by_name_.size() >= static_cast<size_t>(limits_.workers_max)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the cluster has ", limits_.workers_max, " workers, its limit"));
  }
  const WorkerId id(next_id_++);
  Worker& worker = workers_[id];
  worker.id = id;
  worker.heard = now;
  worker.status.set_id(id.value());
  WorkerDescription& description = *worker.status.mutable_description();
  description = request.worker();
  description.set_host(OneLine(description.host(), kShownBytesMax));
  description.set_device(OneLine(description.device(), kShownBytesMax));
  worker.status.set_state(WorkerStatus::IDLE);
  worker.status.set_registered_unix_ms(absl::ToUnixMillis(now));
  worker.status.set_last_heard_unix_ms(absl::ToUnixMillis(now));
  worker.status.set_pid(request.pid());
  worker.measures_links = request.measures_links();
  worker.checks_files = request.checks_files();
  worker.unfit =
      OneLine(absl::StrJoin(request.unfit(), "; "), limits_.reason_bytes_max);
  alive_by_name_[name] = id;
  ++idle_count_;
  ++in_service_count_;
  ++changes_;
  ShowRecord(worker);
  ForgetNamesake(name);
  return id;
}

void WorkerTable::Count(const Worker& worker, int sign) {
  idle_count_ += sign * worker.available();
  in_service_count_ += sign * worker.in_service();
}

void WorkerTable::ShowRecord(Worker& worker) {
  const WorkerRecord& record = records_.Of(worker.name());
  WorkerStatus& status = worker.status;
  worker.doubt = record.doubt();
  status.set_cordoned(record.cordoned);
  status.set_local_failures(static_cast<int>(record.failures.size()));
  std::string why =
      worker.indispensable && !record.cordoned ? "" : record.WhySetAside();
  if (why.empty() && !worker.unfit.empty()) {
    why = absl::StrCat("its machine is not fit: ", worker.unfit);
  }
  if (status.set_aside() == why) return;
  Count(worker, -1);
  status.set_set_aside(std::move(why));
  Count(worker, +1);
  ++changes_;
}

void WorkerTable::ShowRecord(const std::string& name) {
  const auto it = alive_by_name_.find(name);
  if (it != alive_by_name_.end()) ShowRecord(*Find(it->second));
}

void WorkerTable::ShowRecordOfAll(const std::string& name) {
  for (auto& [id, worker] : workers_) {
    if (worker.name() == name) ShowRecord(worker);
  }
}

void WorkerTable::ReviewSetAside() {
  if (!records_.any_set_aside() || reviewed_at_ == changes_) return;
  int fit = 0;
  int sound = 0;
  std::vector<Worker*> failed;  // and nothing else is known against them
  for (auto& [id, worker] : workers_) {
    if (!worker.alive() || worker.leaving || !worker.unfit.empty()) continue;
    const WorkerRecord& record = records_.Of(worker.name());
    if (record.cordoned) continue;
    ++fit;
    if (record.set_aside) {
      failed.push_back(&worker);
    } else {
      ++sound;
    }
  }
  std::stable_sort(
      failed.begin(), failed.end(), [](const Worker* a, const Worker* b) {
        return a->status.local_failures() < b->status.local_failures();
      });
  int missing = (fit + 1) / 2 - sound;
  for (Worker* worker : failed) {
    worker->indispensable = missing-- > 0;
    ShowRecord(*worker);
  }
  reviewed_at_ = changes_;
}

absl::Status WorkerTable::CheckKnown(const std::string& name) const {
  if (!records_.Of(name).empty()) return absl::OkStatus();
  for (const auto& [id, worker] : workers_) {
    if (worker.name() == name) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(
      "no worker has the name ", OneLine(name, limits_.worker_name_bytes_max)));
}

WorkerStatus WorkerTable::StatusOf(const std::string& name) const {
  for (const auto& [id, worker] : workers_) {
    if (worker.name() == name) return worker.status;
  }
  WorkerStatus status;
  status.mutable_description()->set_name(name);
  status.set_cordoned(records_.Of(name).cordoned);
  status.set_set_aside(records_.Of(name).WhySetAside());
  return status;
}

absl::StatusOr<WorkerStatus> WorkerTable::Cordon(const std::string& name,
                                                 const std::string& why) {
  if (absl::Status known = CheckKnown(name); !known.ok()) return known;
  records_.Cordon(name, OneLine(why, limits_.reason_bytes_max));
  ShowRecordOfAll(name);
  return StatusOf(name);
}

absl::StatusOr<WorkerStatus> WorkerTable::Uncordon(const std::string& name) {
  if (absl::Status known = CheckKnown(name); !known.ok()) return known;
  records_.Uncordon(name);
  ++changes_;  // a job that avoided it may take it now
  ShowRecordOfAll(name);
  return StatusOf(name);
}

void WorkerTable::Doubt(const std::string& name) {
  if (!CheckKnown(name).ok()) return;
  records_.Doubt(name);
  ShowRecord(name);
}

bool WorkerTable::AddLocalFailure(const std::string& name, JobId job,
                                  const std::string& why) {
  if (!CheckKnown(name).ok() || !records_.AddFailure(name, job, why)) {
    return false;
  }
  const WorkerRecord& record = records_.Of(name);
  const bool sets_aside =
      !record.set_aside &&
      IsToBeSetAside({.failures = static_cast<int>(record.failures.size()),
                      .in_service = in_service_count_,
                      .alive = alive_count()},
                     limits_.local_failures_max);
  if (sets_aside) records_.SetAside(name);
  ShowRecord(name);
  return sets_aside;
}

void WorkerTable::DidWell(const std::string& name) {
  if (records_.Of(name).doubt() == 0) return;
  records_.ForgetFailures(name);
  ShowRecord(name);
}

void WorkerTable::ForgetNamesake(const std::string& name) {
  const auto it = gone_by_name_.find(name);
  if (it != gone_by_name_.end()) Forget(it->second);
}

void WorkerTable::Forget(WorkerId gone) {
  gone_by_name_.erase(Find(gone)->name());
  gone_.erase(gone);
  workers_.erase(gone);
}

Worker* WorkerTable::Find(WorkerId id) {
  const auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : &it->second;
}

const Worker* WorkerTable::Find(WorkerId id) const {
  const auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : &it->second;
}

void WorkerTable::Seat(WorkerId id, JobId job, int32_t rank) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->idle()) << "worker " << id;
  ++changes_;
  Count(*worker, -1);
  worker->status.set_state(WorkerStatus::BUSY);
  Count(*worker, +1);
  worker->status.set_job(job.value());
  worker->status.set_rank(rank);
}

void WorkerTable::SeatText(WorkerId id, int64_t text) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->idle()) << "worker " << id;
  ++changes_;
  Count(*worker, -1);
  worker->status.set_state(WorkerStatus::BUSY);
  Count(*worker, +1);
  worker->status.set_text(text);
  worker->status.set_reason(absl::StrCat("writes text ", text));
}

void WorkerTable::Release(WorkerId id) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive() && !worker->idle())
      << "worker " << id;
  ++changes_;
  Count(*worker, -1);
  worker->status.set_state(WorkerStatus::IDLE);
  Count(*worker, +1);
  worker->status.clear_job();
  worker->status.clear_rank();
  worker->status.clear_text();
  worker->status.clear_reason();
}

void WorkerTable::Leave(WorkerId id) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive()) << "worker " << id;
  if (worker->leaving) return;
  // What a busy one does counts until its rank has ended.
  if (worker->idle()) ++changes_;
  Count(*worker, -1);
  worker->leaving = true;
  Count(*worker, +1);
}

void WorkerTable::Remove(WorkerId id, WorkerStatus::State state,
                         std::string reason) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive()) << "worker " << id;
  alive_by_name_.erase(worker->name());
  gone_.insert(id);
  gone_by_name_[worker->name()] = id;
  ++changes_;
  Count(*worker, -1);
  worker->status.set_state(state);
  worker->status.clear_job();
  worker->status.clear_rank();
  worker->status.clear_memory_bytes();
  worker->status.clear_text();
  worker->status.set_reason(std::move(reason));
  ForgetOld();
}

void WorkerTable::ForgetOld() {
  while (static_cast<int>(gone_.size()) > limits_.gone_workers_kept) {
    Forget(*gone_.begin());
  }
}

std::vector<const Worker*> WorkerTable::Idle() const {
  std::vector<const Worker*> idle;
  for (const auto& [id, worker] : workers_) {
    if (worker.available()) idle.push_back(&worker);
  }
  return idle;
}

std::vector<const Worker*> WorkerTable::InService() const {
  std::vector<const Worker*> in_service;
  for (const auto& [id, worker] : workers_) {
    if (worker.in_service()) in_service.push_back(&worker);
  }
  return in_service;
}

std::vector<const Worker*> WorkerTable::Alive() const {
  std::vector<const Worker*> alive;
  for (const auto& [id, worker] : workers_) {
    if (worker.alive()) alive.push_back(&worker);
  }
  return alive;
}

void WorkerTable::Forgive(absl::Duration time, absl::Time now) {
  for (auto& [id, worker] : workers_) {
    worker.heard = std::min(worker.heard + time, now);
  }
}

std::vector<WorkerId> WorkerTable::Expired(absl::Time now) const {
  std::vector<WorkerId> expired;
  for (const auto& [id, worker] : workers_) {
    if (worker.alive() && now - worker.heard > limits_.lease) {
      expired.push_back(id);
    }
  }
  return expired;
}

}  // namespace troupe
