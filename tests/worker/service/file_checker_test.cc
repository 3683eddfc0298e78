#include "worker/service/file_checker.h"

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// What workers say to the scheduler.
class Heard {
 public:
  SendToScheduler send() {
    return [this](WorkerMessage message) {
      absl::MutexLock lock(&mutex_);
      answers_.push_back(message.files_checked());
      return absl::OkStatus();
    };
  }
  std::vector<JobFilesChecked> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto all = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return answers_.size() >= count;
    };
    mutex_.Await(absl::Condition(&all));
    return answers_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<JobFilesChecked> answers_ ABSL_GUARDED_BY(mutex_);
};

CheckJobFiles Question(int64_t number) {
  CheckJobFiles request;
  request.set_request(number);
  request.mutable_job()->mutable_data()->set_tokens("/no/such.tokens");
  return request;
}

TEST(FileChecker, AnswersAllThatAreAskedAtOnce) {
  Heard heard;
  FileChecker checker;
  for (int i = 1; i <= 5; ++i) checker.Check(Question(i), heard.send());
  const std::vector<JobFilesChecked> answers = heard.Await(5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(answers[i].request(), i + 1);
    EXPECT_THAT(answers[i].error(), HasSubstr("data.tokens: /no/such.tokens"));
  }
}

// A session may end while a disk has a question: nothing is sent into it then.
TEST(FileChecker, SendsNothingOnceItIsDetached) {
  for (int i = 0; i < 50; ++i) {
    FileChecker checker;
    bool over = false;  // not guarded: sanitizers see a read that is too late
    for (int n = 1; n <= 3; ++n) {
      checker.Check(Question(n), [&over](WorkerMessage) {
        EXPECT_FALSE(over);
        return absl::OkStatus();
      });
    }
    checker.Detach();
    over = true;
  }
}

}  // namespace
}  // namespace troupe
