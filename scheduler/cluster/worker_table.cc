#include "scheduler/cluster/worker_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
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
  alive_by_name_[name] = id;
  ++idle_count_;
  ++changes_;
  ForgetNamesake(name);
  return id;
}

void WorkerTable::ForgetNamesake(const std::string& name) {
  if (workers_.size() == alive_by_name_.size()) return;  // none is gone
  for (auto it = workers_.begin(); it != workers_.end();) {
    const bool replaced = !it->second.alive() && it->second.name() == name;
    it = replaced ? workers_.erase(it) : std::next(it);
  }
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
  --idle_count_;
  ++changes_;
  worker->status.set_state(WorkerStatus::BUSY);
  worker->status.set_job(job.value());
  worker->status.set_rank(rank);
}

void WorkerTable::SeatText(WorkerId id, int64_t text) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->idle()) << "worker " << id;
  --idle_count_;
  ++changes_;
  worker->status.set_state(WorkerStatus::BUSY);
  worker->status.set_text(text);
  worker->status.set_reason(absl::StrCat("writes text ", text));
}

void WorkerTable::Release(WorkerId id) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive() && !worker->idle())
      << "worker " << id;
  ++changes_;
  worker->status.set_state(WorkerStatus::IDLE);
  idle_count_ += worker->idle();
  worker->status.clear_job();
  worker->status.clear_rank();
  worker->status.clear_text();
  worker->status.clear_reason();
}

void WorkerTable::Leave(WorkerId id) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive()) << "worker " << id;
  idle_count_ -= worker->idle();
  worker->leaving = true;
}

void WorkerTable::Remove(WorkerId id, WorkerStatus::State state,
                         std::string reason) {
  Worker* worker = Find(id);
  CHECK(worker != nullptr && worker->alive()) << "worker " << id;
  alive_by_name_.erase(worker->name());
  idle_count_ -= worker->idle();
  ++changes_;
  worker->status.set_state(state);
  worker->status.clear_job();
  worker->status.clear_rank();
  worker->status.clear_memory_bytes();
  worker->status.clear_text();
  worker->status.set_reason(std::move(reason));
  ForgetOld();
}

void WorkerTable::ForgetOld() {
  int gone = static_cast<int>(workers_.size() - alive_by_name_.size());
  for (auto it = workers_.begin();
       it != workers_.end() && gone > limits_.gone_workers_kept;) {
    if (it->second.alive()) {
      ++it;
    } else {
      it = workers_.erase(it);
      --gone;
    }
  }
}

std::vector<const Worker*> WorkerTable::Idle() const {
  std::vector<const Worker*> idle;
  for (const auto& [id, worker] : workers_) {
    if (worker.idle()) idle.push_back(&worker);
  }
  return idle;
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
