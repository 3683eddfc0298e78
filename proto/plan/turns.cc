#include "proto/plan/turns.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "proto/plan/last_step.h"

namespace troupe {
namespace {

constexpr char kLetters[] = "cda";  // by Kind

// The first multiple of `every` from `first` on.
int64_t NextMultiple(int64_t first, int64_t every) {
  return (first + every - 1) / every * every;
}

}  // namespace

std::string TextOf(const TurnEvent& event) {
  std::string text(1, kLetters[event.kind]);
  absl::StrAppend(&text, event.by, event.stop ? "x" : "", event.save ? "s" : "",
                  ":", event.sums);
  return text;
}

absl::StatusOr<TurnEvent> ParseTurnEvent(absl::string_view text) {
  const absl::Status fault = absl::InvalidArgumentError(absl::StrCat(
      "an event of turns begins with a letter and a number, not \"",
      text.substr(0, 8), "\""));
  const size_t end = text.find(':');
  if (end == absl::string_view::npos || end < 2) return fault;
  const size_t letter = absl::string_view(kLetters).find(text[0]);
  if (letter == absl::string_view::npos) return fault;
  TurnEvent event;
  event.kind = static_cast<TurnEvent::Kind>(letter);
  absl::string_view number = text.substr(1, end - 1);
  const auto take = [&number](char flag) {
    if (number.empty() || number.back() != flag) return false;
    number.remove_suffix(1);
    return true;
  };
  event.save = take('s');
  event.stop = take('x');
  if (!absl::SimpleAtoi(number, &event.by) || event.by < 0) return fault;
  event.sums = std::string(text.substr(end + 1));
  return event;
}

TurnRules TurnRulesOf(const Plan& plan) {
  CHECK(plan.derived().takes_turns());
  const ServersSpec& servers = plan.job().servers();
  TurnRules rules = {.replicas = plan.job().parallelism().data()};
  if (servers.has_staleness()) rules.staleness = servers.staleness();
  if (servers.has_order_seed()) rules.order_seed = servers.order_seed();
  return rules;
}

int64_t MeetsAfter(const Plan& plan, int64_t first) {
  const JobSpec& job = plan.job();
  int64_t last = std::min(LastStep(job.training()),
                          NextMultiple(first, kStepsBetweenMeetings));
  for (const int64_t every : {int64_t{job.training().validate_every()},
                              job.checkpoint().directory().empty()
                                  ? int64_t{0}
                                  : int64_t{job.checkpoint().every()}}) {
    if (every > 0) last = std::min(last, NextMultiple(first, every));
  }
  return last;
}

StepTurns::StepTurns(const TurnRules& rules, int64_t first, int64_t last)
    : rules_(rules), first_(first), last_(last), replicas_(rules.replicas) {
  CHECK_GE(last, first);
}

int64_t StepTurns::claimed() const {
  return first_ - 1 + static_cast<int64_t>(claimed_.size());
}

bool StepTurns::MayClaim(int replica) const {
  const Replica& self = replicas_[replica];
  if (self.has.has_value() || claimed() >= last_) return false;
  if (!rules_.staleness.has_value()) return true;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Replica& other : replicas_) least = std::min(least, other.done);
  return self.done - least <= *rules_.staleness;
}

bool StepTurns::IsDrawn(const TurnEvent& event) const {
  if (!rules_.order_seed.has_value()) return true;
  uint32_t possible = 0;
  uint32_t number = 0;
  for (int r = 0; r < rules_.replicas; ++r) {
    const bool has = replicas_[r].has.has_value();
    if (!has && !MayClaim(r)) continue;
    if (r == event.by) number = possible;
    ++possible;
  }
  const uint32_t drawn =
      PhiloxUint32({.seed = static_cast<uint64_t>(*rules_.order_seed),
                    .purpose = RandomPurpose::kTurns,
                    .step = static_cast<uint32_t>(first_)},
                   events_ - asks_) %
      possible;
  return drawn == number;
}

bool StepTurns::Allows(const TurnEvent& event) const {
  if (event.kind == TurnEvent::kAsk) return claimed() < last_;
  if (event.by >= rules_.replicas) return false;
  const bool may = event.kind == TurnEvent::kClaim
                       ? MayClaim(event.by)
                       : replicas_[event.by].has.has_value();
  return may && IsDrawn(event);
}

absl::Status StepTurns::Apply(const TurnEvent& event) {
  if (!Allows(event)) {
    return absl::FailedPreconditionError(
        absl::StrCat("event ", events_, " of steps ", first_, " to ", last_,
                     ", ", TextOf(event).substr(0, 16),
                     ", may not come now: ranks do not agree "
                     "about whose turn it is"));
  }
  ++events_;
  if (event.kind == TurnEvent::kAsk) {
    ++asks_;
    stop_ |= event.stop;
    save_ |= event.save;
    return absl::OkStatus();
  }
  Replica& replica = replicas_[event.by];
  if (event.kind == TurnEvent::kClaim) {
    claimed_.push_back({.by = event.by, .stop = stop_, .save = save_});
    if (stop_ || save_) last_ = claimed();
    stop_ = save_ = false;
    Turn& turn = replica.has.emplace();
    turn.set_replica(event.by);
    turn.set_batch(claimed());
    turn.set_weights_step(delivered());
    return absl::OkStatus();
  }
  delivered_.push_back(*replica.has);
  replica.has.reset();
  ++replica.done;
  return absl::OkStatus();
}

const StepTurns::Claimed& StepTurns::ClaimOf(int64_t step) const {
  CHECK(step >= first_ && step <= claimed()) << "step " << step;
  return claimed_[step - first_];
}

const Turn& StepTurns::DeliveredIn(int64_t step) const {
  CHECK(step >= first_ && step <= delivered()) << "step " << step;
  return delivered_[step - first_];
}

}  // namespace troupe
