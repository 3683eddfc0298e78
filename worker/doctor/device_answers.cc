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
  bool starts_afresh ABSL_GUARDED_BY(mutex) = false;  // nobody may ask
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

}  // namespace

class DeviceAsker::Asker {
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
    const absl::Time until = SteadyNow() + limit_;
    const auto may_ask = [this]() ABSL_SHARED_LOCKS_REQUIRED(with_->mutex) {
      return !with_->starts_afresh;
    };
    if (!with_->answers.Await(with_->mutex, limit_, may_ask)) {
      return Fails(absl::StrCat("has started afresh for ",
                                absl::FormatDuration(limit_)));
    }
    // A caller that comes while another waits has the same answer.
    if (with_->asked == with_->answered) ++with_->asked;
    const auto has_answered = [this, question = with_->asked]()
                                  ABSL_SHARED_LOCKS_REQUIRED(with_->mutex) {
                                    return with_->answered >= question;
                                  };
    if (!with_->answers.Await(with_->mutex, until - SteadyNow(),
                              has_answered)) {
      return Fails(NoAnswer());
    }
    if (with_->answer.ok()) return {};
    return Fails(std::string(with_->answer.message()));
  }

  absl::Status StartAfresh() {
    {
      absl::MutexLock lock(&with_->mutex);
      const auto is_out = [this]() ABSL_SHARED_LOCKS_REQUIRED(with_->mutex) {
        return !with_->starts_afresh && with_->asked == with_->answered;
      };
      if (!with_->answers.Await(with_->mutex, limit_, is_out)) {
        return absl::UnavailableError(absl::StrCat(
            name_, ": ", NoAnswer(),
            "; this process cannot use it any more: start it again, and where "
            "that does not help look for what the driver says"));
      }
      with_->starts_afresh = true;
    }
    absl::Status fresh = with_->device.StartAfresh();
    absl::MutexLock lock(&with_->mutex);
    with_->starts_afresh = false;
    with_->answers.Say();
    return fresh;
  }

 private:
  Finding Fails(const std::string& how) const {
    return {.state = FindingState::kFail,
            .text = absl::StrCat(name_, ": ", how)};
  }
  std::string NoAnswer() const {
    return absl::StrCat("no answer to a copy of 4 KiB within ",
                        absl::FormatDuration(limit_));
  }

  const absl::Duration limit_;
  const std::string name_;
  const std::shared_ptr<Conversation> with_;
};

DeviceAsker::DeviceAsker(Device& device, absl::Duration limit)
    : asker_(std::make_shared<Asker>(device, limit)) {}

Finding DeviceAsker::operator()() const { return asker_->Ask(); }

absl::Status DeviceAsker::StartAfresh() const { return asker_->StartAfresh(); }

}  // namespace troupe
