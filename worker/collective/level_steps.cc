#include "worker/collective/level_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// What is left of an operation's time for the members to find out which is to
// blame, and how long they wait for one another where more is left.
constexpr absl::Duration kInquest = absl::Seconds(2);
constexpr absl::Duration kInquestMax = absl::Seconds(30);
// What a step is aborted with that waits in vain.
constexpr char kEndedElsewhere[] = "another member of the group failed";

int LanesOf(const Group& group) {
  int lanes = 1;
  for (const Group::Way& way : group.ways()) {
    lanes = std::max(lanes, OrderOf(way, 1).lanes());
  }
  return lanes;
}

CommOptions OptionsUntil(absl::Time deadline, const StepsCall& call) {
  return {
      .name = call.name, .timeout = deadline - SteadyNow(), .meet = call.meet};
}

}  // namespace

LevelSteps::LevelSteps(const Group& group, LevelParts parts,
                       std::shared_ptr<Watch> watch)
    : flat_(std::move(parts.flat)),
      levels_(std::move(parts.levels)),
      watch_(std::move(watch)),
      running_(levels_.size()),
      lanes_(LanesOf(group)) {
  watch_->Add(*this);
}

LevelSteps::~LevelSteps() { watch_->Remove(*this); }

uint64_t LevelSteps::sent_bytes() const {
  uint64_t bytes = flat_->sent_bytes();
  for (const auto& level : levels_) {
    if (level != nullptr) bytes += level->sent_bytes();
  }
  return bytes;
}

absl::Status LevelSteps::Run(const Group::Way& way, const LaneOrder& order,
                             const StepsCall& call, const Execute& execute) {
  const absl::Duration left = call.deadline - SteadyNow();
  const absl::Time deadline = call.deadline - std::min(left / 4, kInquest);
  return lanes_.Run(
      order,
      [&](int64_t piece, int index) -> absl::Status {
        const Group::Step& step = way.steps(index);
        RETURN_IF_ERROR(Begin(step.level(), deadline));
        const absl::Status status =
            execute({.piece = piece,
                     .step = step,
                     .index = index,
                     .level = *levels_[step.level()],
                     .options = OptionsUntil(deadline, call)});
        absl::MutexLock lock(&mutex_);
        running_[step.level()] = absl::nullopt;
        return status;
      },
      [&](const absl::Status& failure) {
        absl::Status blamed = Blamed(failure, call);
        {
          absl::MutexLock lock(&mutex_);
          ended_ = true;
        }
        // A lane that has yet to make its call is not to wait either.
        for (Communicator* const level : Running()) {
          level->Abort(absl::CancelledError(kEndedElsewhere));
        }
        return blamed;
      });
}

absl::Status LevelSteps::Begin(int level, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    if (ended_) return absl::CancelledError(kEndedElsewhere);
    running_[level] = deadline;
  }
  // Where there is no deadline, the flat one is looked at all the same.
  watch_->Expect(deadline);
  return absl::OkStatus();
}

absl::Status LevelSteps::Blamed(const absl::Status& failure,
                                const StepsCall& call) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) {
      return absl::CancelledError(
          absl::StrCat("aborted: ", aborted_.message()));
    }
  }
  const absl::Duration patience =
      std::clamp((call.deadline - call.start) / 10, kInquest, kInquestMax);
  const absl::Time end = std::min(call.deadline, SteadyNow() + patience);
  const absl::Status met = flat_->Barrier(OptionsUntil(end, call));
  if (met.ok()) {
    return absl::IsDeadlineExceeded(failure) ? AllCameLate(call) : failure;
  }
  // A member that knows nothing of a broken connection need not come in time.
  if (absl::IsUnavailable(failure) && absl::IsDeadlineExceeded(met) &&
      !absl::StrContains(failure.message(), kEndedElsewhere)) {
    return failure;
  }
  // As if the operation itself had said so.
  absl::string_view message = met.message();
  absl::ConsumePrefix(
      &message, absl::StrCat("group ", flat_->group().name, ": barrier",
                             call.name.empty() ? "" : " of ", call.name, ": "));
  absl::Status blamed(met.code(), message);
  met.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    blamed.SetPayload(url, payload);
  });
  return blamed;
}

// The step blames a member that was still waiting for another, which has come
// now.
absl::Status LevelSteps::AllCameLate(const StepsCall& call) const {
  return absl::DeadlineExceededError(
      absl::StrCat("all members came, but some too late (rank ",
                   flat_->group().ranks[flat_->rank()], " waited ",
                   absl::FormatDuration(absl::Trunc(SteadyNow() - call.start,
                                                    absl::Milliseconds(1))),
                   ")"));
}

std::vector<Communicator*> LevelSteps::Running() {
  std::vector<Communicator*> running;
  absl::MutexLock lock(&mutex_);
  for (size_t l = 0; l < running_.size(); ++l) {
    if (running_[l]) running.push_back(levels_[l].get());
  }
  return running;
}

void LevelSteps::Abort(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    aborted_ = why;
  }
  // First that by which the others know which to blame.
  flat_->Abort(why);
  for (const auto& level : levels_) {
    if (level != nullptr) level->Abort(why);
  }
}

absl::Time LevelSteps::Look() {
  absl::Time soonest = absl::InfiniteFuture();
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& deadline : running_) {
      if (!deadline) continue;
      soonest = std::min({soonest, *deadline, SteadyNow() + absl::Hours(1)});
    }
  }
  if (soonest == absl::InfiniteFuture()) return soonest;
  if (flat_->SeesFailure()) {
    for (Communicator* const level : Running()) {
      level->AbortCall(absl::CancelledError(kEndedElsewhere));
    }
  }
  return soonest;
}

}  // namespace troupe
