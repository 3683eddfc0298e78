#include "scheduler/store/store_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace troupe {
namespace {

template <typename T>
void DropOldest(std::vector<T>& rows, size_t keep) {
  if (rows.size() > keep) rows.erase(rows.begin(), rows.end() - keep);
}

template <typename T>
void Prepend(std::vector<T>& old, std::vector<T>& rows) {
  old.insert(old.end(), std::make_move_iterator(rows.begin()),
             std::make_move_iterator(rows.end()));
  rows = std::move(old);
}

}  // namespace

StoreWriter::StoreWriter(Store& store)
    : store_(store), thread_([this] { Loop(); }) {}

StoreWriter::~StoreWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    urgent_.Say();
  }
  thread_.join();
}

void StoreWriter::Add(const Actions& actions) {
  absl::MutexLock lock(&mutex_);
  for (const Action& action : actions) {
    if (const auto* job = std::get_if<PersistJob>(&action)) {
      pending_.jobs[JobId(job->row->status.id())] = job->row;
    } else if (const auto* handed = std::get_if<PersistHandOut>(&action)) {
      pending_.hand_outs[handed->job] = *handed;
    } else if (const auto* worker = std::get_if<PersistWorker>(&action)) {
      pending_.workers[worker->record.name] = worker->record;
    } else if (const auto* host = std::get_if<PersistHostLinks>(&action)) {
      pending_.hosts[host->links.host()] = host->links;
    } else if (const auto* step = std::get_if<PersistStep>(&action)) {
      pending_.steps.push_back(*step);
    } else if (const auto* event = std::get_if<PersistEvent>(&action)) {
      pending_.events.push_back(*event);
    } else if (const auto* thin = std::get_if<ThinSteps>(&action)) {
      pending_.thinned.push_back(*thin);
    } else if (const auto* forget = std::get_if<ForgetJob>(&action)) {
      pending_.forgotten.push_back(forget->job);
    }
  }
  Bound();
  if (HasUrgent()) urgent_.Say();
}

void StoreWriter::Flush(Done done) {
  absl::MutexLock lock(&mutex_);
  flushes_.push_back(std::move(done));
  urgent_.Say();
}

absl::Status StoreWriter::health() const {
  absl::MutexLock lock(&mutex_);
  return health_;
}

// Rows of forgotten jobs would be written and removed again. While the disk is
// full, clients may submit and cancel as many as they like.
void StoreWriter::DropForgotten() {
  for (const JobId job : pending_.forgotten) {
    pending_.jobs.erase(job);
    pending_.hand_outs.erase(job);
  }
  // What is forgotten here, the next scheduler forgets when it loads.
  DropOldest(pending_.forgotten, kRowsMax / 2);
}

void StoreWriter::Bound() {
  DropForgotten();
  if (pending_.steps.size() <= kRowsMax && pending_.events.size() <= kRowsMax) {
    return;
  }
  LogWarning("the store cannot keep up: the oldest unwritten steps are lost");
  DropOldest(pending_.steps, kRowsMax / 2);
  DropOldest(pending_.events, kRowsMax / 2);
  DropOldest(pending_.thinned, kRowsMax / 2);
}

void StoreWriter::PutBack(StoreBatch batch) {
  pending_.jobs.merge(batch.jobs);  // newer rows of a job win
  pending_.hand_outs.merge(batch.hand_outs);
  pending_.workers.merge(batch.workers);
  pending_.hosts.merge(batch.hosts);
  Prepend(batch.steps, pending_.steps);
  Prepend(batch.events, pending_.events);
  Prepend(batch.thinned, pending_.thinned);
  Prepend(batch.forgotten, pending_.forgotten);
  Bound();
}

void StoreWriter::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto has_urgent = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return HasUrgent();
      };
      urgent_.Await(mutex_, health_.ok() ? kInterval : kRetry, has_urgent);
      if (stopping_ && pending_.empty() && flushes_.empty()) return;
    }
    WriteOnce();
    absl::MutexLock lock(&mutex_);
    if (stopping_ && !health_.ok()) return;
  }
}

void StoreWriter::WriteOnce() {
  StoreBatch batch;
  std::vector<Done> flushes;
  {
    absl::MutexLock lock(&mutex_);
    batch = std::exchange(pending_, {});
    flushes = std::exchange(flushes_, {});
  }
  const absl::Status written = store_.Write(batch);
  {
    absl::MutexLock lock(&mutex_);
    if (!written.ok()) PutBack(std::move(batch));
    if (written.ok() != health_.ok()) {
      if (written.ok()) {
        LogInfo("the store can be written again");
      } else {
        LogError(
            absl::StrCat("the store cannot be written: ", written.message()));
      }
    }
    health_ = written;
  }
  for (const Done& done : flushes) done(written);
}

}  // namespace troupe
