#include "worker/doctor/device_answers.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// Memory is taken and given back; half of what it gets is made zero.
absl::Status TryDevice(Device& device) {
  constexpr size_t kBytes = 4096;
  ASSIGN_OR_RETURN(void* const memory, device.Allocate(kBytes));
  std::vector<char> bytes(kBytes, 1);
  device.CopyFromHost(memory, bytes.data(), kBytes);
  device.Zero(memory, kBytes / 2);
  device.CopyToHost(bytes.data(), memory, kBytes);
  const absl::Status done = device.Synchronize();
  device.Free(memory);
  RETURN_IF_ERROR(done);
  const auto middle = bytes.begin() + kBytes / 2;
  if (std::count(bytes.begin(), middle, 0) == kBytes / 2 &&
      std::count(middle, bytes.end(), 1) == kBytes / 2) {
    return absl::OkStatus();
  }
  return absl::DataLossError("what it was given is not what it gives back");
}

struct Conversation {
  explicit Conversation(Device& asked) : device(asked) {}

  Device& device;
  absl::Mutex mutex;
  SteadyCondition answers;
  int64_t asked ABSL_GUARDED_BY(mutex) = 0;
  int64_t answered ABSL_GUARDED_BY(mutex) = 0;
  absl::Status answer ABSL_GUARDED_BY(mutex);  // to the last one
  bool over ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;  // the thread is out of the device

  // Waits for the next question; false: there is none any more.
  bool IsAsked(int64_t& question) ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    const auto is_asked = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return over || asked > answered;
    };
    mutex.Await(absl::Condition(&is_asked));
    question = asked;
    ended = over;
    answers.Say();
    return !over;
  }

  void Answer() ABSL_LOCKS_EXCLUDED(mutex) {
    for (int64_t question = 0; IsAsked(question);) {
      absl::Status said = TryDevice(device);
      absl::MutexLock lock(&mutex);
      answer = std::move(said);
      answered = question;
      answers.Say();
    }
  }
};

class Asker {
 public:
  Asker(Device& device, absl::Duration limit)
      : limit_(limit),
        name_(device.Describe()),
        with_(std::make_shared<Conversation>(device)) {
    std::thread([with = with_] { with->Answer(); }).detach();
  }
  ~Asker() {
    absl::MutexLock lock(&with_->mutex);
    with_->over = true;
    const auto has_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(with_->mutex) {
      return with_->ended;
    };
    with_->answers.Await(with_->mutex, limit_, has_ended);
  }

  Finding Ask() {
    absl::MutexLock lock(&with_->mutex);
    // One who comes while another waits has the same answer.
    if (with_->asked == with_->answered) ++with_->asked;
    const auto has_answered = [this, question = with_->asked]()
                                  ABSL_SHARED_LOCKS_REQUIRED(with_->mutex) {
                                    return with_->answered >= question;
                                  };
    const bool in_time =
        with_->answers.Await(with_->mutex, limit_, has_answered);
    if (in_time && with_->answer.ok()) return {};
    return {.state = FindingState::kFail,
            .text = absl::StrCat(
                name_, ": ",
                in_time ? std::string(with_->answer.message())
                        : absl::StrCat("no answer to a copy of 4 KiB within ",
                                       absl::FormatDuration(limit_)))};
  }

 private:
  const absl::Duration limit_;
  const std::string name_;
  const std::shared_ptr<Conversation> with_;
};

}  // namespace

std::function<Finding()> AsksDevice(Device& device, absl::Duration limit) {
  return
      [asker = std::make_shared<Asker>(device, limit)] { return asker->Ask(); };
}

}  // namespace troupe
