#include "scheduler/service/job_watchers.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/service/grpc_status.h"

namespace troupe {

class JobWatch final : public grpc::ServerWriteReactor<WatchJobResponse> {
 public:
  JobWatch(JobWatchers& table, const std::string& client,
           const WatchJobRequest& request)
      : table_(table),
        client_(client),
        job_(request.id()),
        from_step_(request.from_step()),
        from_event_(request.from_event()) {}

  JobId job() const { return job_; }
  const std::string& client() const { return client_; }

  // In place of everything else.
  void Refuse(const absl::Status& why) {
    absl::MutexLock lock(&mutex_);
    FinishOnce(ToGrpc(why));
  }

  // Sends what is new, unless a message is on its way: then that one's end asks
  // again.
  void Pump() {
    absl::MutexLock lock(&mutex_);
    if (!writing_ && !finished_) PumpLocked();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (finish_.has_value() || !ok) {
      return FinishOnce(finish_.value_or(
          grpc::Status(grpc::StatusCode::CANCELLED, "not read")));
    }
    if (!finished_) PumpLocked();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    const grpc::Status cancelled(grpc::StatusCode::CANCELLED, "cancelled");
    if (writing_) {
      finish_ = cancelled;
    } else {
      FinishOnce(cancelled);
    }
  }

  void OnDone() override {
    table_.Detach(this);
    delete this;
  }

 private:
  struct News {
    WatchJobResponse response;
    bool last = false;
  };

  absl::StatusOr<News> Look() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return table_.host_.Read(
        [this, from_step = from_step_, from_event = from_event_](
            const Cluster& cluster, absl::Time) -> absl::StatusOr<News> {
          const absl::StatusOr<const Job*> job = cluster.FindJob(job_);
          if (!job.ok()) return job.status();
          News news;
          news.response = JobTable::NewsSince(**job, from_step, from_event);
          news.last = (*job)->ended() &&
                      news.response.steps_size() < JobTable::kWatchStepsMax;
          return news;
        });
  }

  void PumpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::StatusOr<News> news = Look();
    if (!news.ok()) return FinishOnce(ToGrpc(news.status()));
    WatchJobResponse& response = news->response;
    const std::string status = response.status().SerializeAsString();
    const bool fresh = response.steps_size() > 0 ||
                       response.events_size() > 0 || status != last_status_;
    if (fresh) {
      last_status_ = status;
      if (response.steps_size() > 0) {
        from_step_ = response.steps().rbegin()->step();
      }
      from_event_ += response.events_size();
      if (derived_sent_) {
        response.clear_derived();
        response.clear_mesh();
      }
      derived_sent_ = derived_sent_ || response.has_derived();
      outgoing_ = std::move(response);
      writing_ = true;
      StartWrite(&outgoing_);
    } else if (news->last) {
      FinishOnce(grpc::Status::OK);
    }
  }

  void FinishOnce(const grpc::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  JobWatchers& table_;
  const std::string client_;
  const JobId job_;
  absl::Mutex mutex_;
  int64_t from_step_ ABSL_GUARDED_BY(mutex_);
  int64_t from_event_ ABSL_GUARDED_BY(mutex_);
  std::string last_status_ ABSL_GUARDED_BY(mutex_);
  bool derived_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> finish_ ABSL_GUARDED_BY(mutex_);
  WatchJobResponse outgoing_;  // gRPC reads it while writing_
};

JobWatchers::JobWatchers(ClusterHost& host)
    : host_(host), thread_([this] { Loop(); }) {}

JobWatchers::~JobWatchers() {
  {
    absl::MutexLock lock(&changed_mutex_);
    stopping_ = true;
  }
  thread_.join();
}

grpc::ServerWriteReactor<WatchJobResponse>* JobWatchers::Watch(
    const std::string& client, const WatchJobRequest& request) {
  auto* watch = new JobWatch(*this, client, request);
  absl::MutexLock lock(&mutex_);
  int& of_client = of_client_[client];
  const bool is_too_many =
      watches_.size() >= kWatchesMax || of_client >= kWatchesOfClientMax;
  watches_.emplace(watch->job(), watch);
  ++of_client;
  if (is_too_many) {
    watch->Refuse(absl::ResourceExhaustedError(absl::StrCat(
        watches_.size() - 1, " streams watch jobs already, ", of_client - 1,
        " of them of ", client, "; at most ", kWatchesMax, " may, and ",
        kWatchesOfClientMax, " of one client")));
  } else {
    watch->Pump();
  }
  return watch;
}

void JobWatchers::Detach(JobWatch* watch) {
  absl::MutexLock lock(&mutex_);
  const auto of_client = of_client_.find(watch->client());
  if (--of_client->second == 0) of_client_.erase(of_client);
  const auto [begin, end] = watches_.equal_range(watch->job());
  for (auto it = begin; it != end; ++it) {
    if (it->second == watch) {
      watches_.erase(it);
      return;
    }
  }
}

void JobWatchers::Carry(const Actions& actions) {
  absl::MutexLock lock(&changed_mutex_);
  for (const Action& action : actions) {
    if (const auto* notify = std::get_if<NotifyJob>(&action)) {
      changed_.insert(notify->job);
    }
  }
}

void JobWatchers::Loop() {
  while (true) {
    std::set<JobId> changed;
    {
      absl::MutexLock lock(&changed_mutex_);
      const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(changed_mutex_) {
        return stopping_ || !changed_.empty();
      };
      changed_mutex_.Await(absl::Condition(&due));
      if (stopping_) return;
      changed = std::exchange(changed_, {});
    }
    for (const JobId job : changed) {
      absl::MutexLock lock(&mutex_);
      const auto [begin, end] = watches_.equal_range(job);
      for (auto it = begin; it != end; ++it) it->second->Pump();
    }
  }
}

}  // namespace troupe
