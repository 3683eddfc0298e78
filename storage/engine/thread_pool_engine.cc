#include "storage/engine/thread_pool_engine.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "storage/engine/posix_file.h"
#include "storage/engine/transfer.h"

namespace troupe {
namespace {

constexpr int kThreadsMax = 4;

class ThreadPoolEngine final : public IoEngine {
 public:
  explicit ThreadPoolEngine(int depth) : depth_(depth) {
    CHECK_GE(depth, 1);
    for (int i = 0; i < std::min(depth, kThreadsMax); ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  ~ThreadPoolEngine() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;  // threads finish the queue first
    }
    for (std::thread& thread : threads_) thread.join();
  }

  absl::string_view name() const override { return "thread_pool"; }
  int depth() const override { return depth_; }
  int in_flight() const override { return in_flight_; }

  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, mode));
    const int id = next_id_++;
    files_.emplace(id, std::make_unique<PosixFile>(std::move(file)));
    return IoFile{id};
  }

  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return Find(file).Size();
  }

  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    if (in_flight_ == 0) return {};
    std::vector<IoCompletion> done;
    absl::MutexLock lock(&mutex_);
    const auto is_done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !done_.empty();
    };
    finished_.Await(mutex_, timeout, is_done);
    done.swap(done_);
    in_flight_ -= static_cast<int>(done.size());
    return done;
  }

  // What a thread has begun ends by itself.
  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    for (const Job& job : std::exchange(queue_, {})) {
      FileTransfer transfer(job.request, job.file->path());
      transfer.Cancel();
      transfer.Advance(-ECANCELED, false);
      done_.push_back({job.request.tag, transfer.status()});
    }
    finished_.Say();
  }

  absl::Status Sync(IoFile file) override { return Find(file).Sync(); }

  absl::Status Close(IoFile file) override {
    const absl::Status status = Find(file).Close();
    files_.erase(file.id);
    return status;
  }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    in_flight_ += static_cast<int>(requests.size());
    absl::MutexLock lock(&mutex_);
    for (const IoRequest& request : requests) {
      queue_.push_back({request, &Find(request.file)});
    }
  }

 private:
  struct Job {
    IoRequest request;
    const PosixFile* file;  // stays open while a request of it is in flight
  };

  PosixFile& Find(IoFile file) {
    const auto it = files_.find(file.id);
    CHECK(it != files_.end()) << "file " << file.id << " is not open";
    return *it->second;
  }

  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  }

  std::optional<Job> Next() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ThreadPoolEngine::HasWork));
    if (queue_.empty()) return std::nullopt;
    const Job job = queue_.front();
    queue_.pop_front();
    return job;
  }

  void Work() {
    while (const std::optional<Job> job = Next()) {
      const IoRequest& r = job->request;
      absl::Status status =
          r.kind == IoKind::kRead
              ? job->file->ReadAt(r.offset, r.bytes, r.data)
              : job->file->WriteAt(r.offset, {r.data, r.bytes});
      absl::MutexLock lock(&mutex_);
      done_.push_back({r.tag, std::move(status)});
      finished_.Say();
    }
  }

  const int depth_;
  int in_flight_ = 0;
  int next_id_ = 0;
  absl::flat_hash_map<int, std::unique_ptr<PosixFile>> files_;
  absl::Mutex mutex_;
  std::deque<Job> queue_ ABSL_GUARDED_BY(mutex_);           // at most depth_
  std::vector<IoCompletion> done_ ABSL_GUARDED_BY(mutex_);  // at most depth_
  SteadyCondition finished_;                                // done_ has more
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<IoEngine> MakeThreadPoolEngine(int depth) {
  return std::make_unique<ThreadPoolEngine>(depth);
}

}  // namespace troupe
