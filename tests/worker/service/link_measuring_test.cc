#include "worker/service/link_measuring.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Workers that measure, and the scheduler that they meet through.
class Meeting {
 public:
  explicit Meeting(int ranks, double seconds) : workers_(ranks) {
    request_.set_measurement(7);
    request_.set_seconds_max(seconds);
    request_.set_bytes_max(1 << 20);
    for (int rank = 0; rank < ranks; ++rank) {
      request_.add_worker_names(absl::StrCat("w", rank));
    }
  }

  ~Meeting() {
    for (size_t rank = 0; rank < ranks(); ++rank) Stop(static_cast<int>(rank));
  }

  void Begin(int rank) {
    MeasureLinks request = request_;
    request.set_rank(rank);
    auto worker = std::make_unique<LinkMeasuring>(
        request,
        [this, rank](const WorkerMessage& message) {
          return Hear(rank, message);
        },
        "127.0.0.1");
    absl::MutexLock lock(&mutex_);
    workers_[rank] = std::move(worker);
    for (const auto& [key, value] : values_) Tell(rank, key, value);
  }

  void Stop(int rank) {
    std::unique_ptr<LinkMeasuring> worker;
    {
      absl::MutexLock lock(&mutex_);
      worker = std::move(workers_[rank]);
    }
  }

  // Once `count` have come.
  std::map<int, LinksMeasured> Answers(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto come = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return answers_.size() >= count;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&come), absl::Seconds(60));
    return answers_;
  }

 private:
  size_t ranks() const {
    return static_cast<size_t>(request_.worker_names_size());
  }

  absl::Status Hear(int rank, const WorkerMessage& message) {
    absl::MutexLock lock(&mutex_);
    if (message.has_links_measured()) {
      answers_[rank] = message.links_measured();
    } else if (message.has_store_set()) {
      const StoreSet& set = message.store_set();
      values_[set.key()] = set.value();
      for (size_t other = 0; other < workers_.size(); ++other) {
        Tell(static_cast<int>(other), set.key(), set.value());
      }
    }
    return absl::OkStatus();
  }

  void Tell(int rank, const std::string& key, const std::string& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (workers_[rank] == nullptr) return;
    StoreValue message;
    message.mutable_ref()->set_measurement(request_.measurement());
    message.set_key(key);
    message.set_value(value);
    workers_[rank]->OnValue(message);
  }

  MeasureLinks request_;
  absl::Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  std::map<int, LinksMeasured> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<LinkMeasuring>> workers_ ABSL_GUARDED_BY(mutex_);
};

TEST(LinkMeasuring, FourWorkersMeasureOverLoopback) {
  Meeting meeting(4, 60);
  for (int rank = 0; rank < 4; ++rank) meeting.Begin(rank);
  const auto answers = meeting.Answers(4);
  ASSERT_EQ(answers.size(), 4u);
  for (const auto& [rank, answer] : answers) {
    EXPECT_EQ(answer.error(), "");
    EXPECT_EQ(answer.measurement(), 7);
    EXPECT_GT(answer.together_bytes_per_second(), 0);
  }
  EXPECT_GT(answers.at(0).alone().bytes_per_second(), 0);
}

TEST(LinkMeasuring, APeerThatDoesNotComeIsNoHang) {
  Meeting meeting(2, 0.2);
  meeting.Begin(0);
  const auto answers = meeting.Answers(1);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_NE(answers.at(0).error(), "");
}

TEST(LinkMeasuring, OneThatIsStoppedEndsAtOnceAndSaysNothing) {
  Meeting meeting(2, 60);
  meeting.Begin(1);
  const absl::Time begin = SteadyNow();
  meeting.Stop(1);
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(10));
  EXPECT_TRUE(meeting.Answers(0).empty());
}

TEST(LinkMeasuring, RefusesWhatIsNoMeasurement) {
  Meeting meeting(3, 60);
  meeting.Begin(0);
  EXPECT_THAT(meeting.Answers(1).at(0).error(),
              HasSubstr("rank 0 of 3 measures no links"));
}

}  // namespace
}  // namespace troupe
