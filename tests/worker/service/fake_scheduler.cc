#include "tests/worker/service/fake_scheduler.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {

FakeScheduler::FakeScheduler(const Options& options) : options_(options) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr) << options.address;
  address_ = absl::StrCat("127.0.0.1:", port_);
}

FakeScheduler::~FakeScheduler() {
  EndSessions();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakeScheduler::Send(const std::string& worker,
                         const SchedulerMessage& message) {
  absl::MutexLock lock(&mutex_);
  streams_.at(worker)->Write(message);
}

void FakeScheduler::Pause(bool paused) {
  absl::MutexLock lock(&mutex_);
  paused_ = paused;
}

void FakeScheduler::EndSessions() {
  absl::MutexLock lock(&mutex_);
  paused_ = false;
  for (const auto& [name, context] : contexts_) context->TryCancel();
}

std::vector<WorkerMessage> FakeScheduler::AwaitMessages(
    size_t count, std::function<bool(const WorkerMessage&)> wanted) {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerMessage> found;
  const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    found.clear();
    for (const WorkerMessage& message : heard_) {
      if (wanted(message)) found.push_back(message);
    }
    return found.size() >= count;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20));
  return found;
}

size_t FakeScheduler::Count(
    const std::function<bool(const WorkerMessage&)>& wanted) {
  absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const WorkerMessage& message : heard_) count += wanted(message);
  return count;
}

grpc::Status FakeScheduler::Session(grpc::ServerContext* context,
                                    Stream* stream) {
  WorkerMessage message;
  if (!stream->Read(&message) || !message.has_register_()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "no registration"};
  }
  if (!options_.refusal.ok()) {
    absl::MutexLock lock(&mutex_);
    heard_.push_back(message);
    return {static_cast<grpc::StatusCode>(options_.refusal.code()),
            std::string(options_.refusal.message())};
  }
  const std::string name = message.register_().worker().name();
  {
    absl::MutexLock lock(&mutex_);
    heard_.push_back(message);
    streams_[name] = stream;
    contexts_[name] = context;
    if (options_.answers) {
      SchedulerMessage answer;
      answer.mutable_registered()->set_worker_id(7);
      answer.mutable_registered()->set_heartbeat_seconds(
          options_.heartbeat_seconds);
      answer.mutable_registered()->set_cluster_id(options_.cluster_id);
      stream->Write(answer);
    }
  }
  while (stream->Read(&message)) {
    absl::MutexLock lock(&mutex_);
    const auto goes_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !paused_;
    };
    mutex_.Await(absl::Condition(&goes_on));
    heard_.push_back(message);
    React(*stream, message);
  }
  absl::MutexLock lock(&mutex_);
  if (streams_[name] == stream) {
    streams_.erase(name);
    contexts_.erase(name);
  }
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    it = it->second.first == stream ? waiting_.erase(it) : std::next(it);
  }
  return grpc::Status::OK;
}

void FakeScheduler::React(Stream& stream, const WorkerMessage& message) {
  SchedulerMessage answer;
  if (message.has_store_set()) {
    const std::string& key = message.store_set().key();
    store_[key] = message.store_set().value();
    answer.mutable_store_value()->set_key(key);
    answer.mutable_store_value()->set_value(store_[key]);
    const auto [begin, end] = waiting_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      *answer.mutable_store_value()->mutable_ref() = it->second.second;
      it->second.first->Write(answer);
    }
    waiting_.erase(begin, end);
  } else if (message.has_store_get()) {
    const std::string& key = message.store_get().key();
    if (store_.count(key) == 0) {
      waiting_.insert({key, {&stream, message.store_get().ref()}});
      return;
    }
    *answer.mutable_store_value()->mutable_ref() = message.store_get().ref();
    answer.mutable_store_value()->set_key(key);
    answer.mutable_store_value()->set_value(store_[key]);
    stream.Write(answer);
  } else if (message.has_shard()) {
    // Jobs of these tests have one rank.
    CheckpointCommit& commit = *answer.mutable_commit();
    *commit.mutable_ref() = message.shard().ref();
    commit.set_step(message.shard().step());
    commit.set_write(message.shard().write());
    *commit.add_shards() = message.shard();
    stream.Write(answer);
  } else if (message.has_committed()) {
    *answer.mutable_done()->mutable_ref() = message.committed().ref();
    answer.mutable_done()->set_step(message.committed().checkpoint().step());
    stream.Write(answer);
  }
}

}  // namespace troupe
