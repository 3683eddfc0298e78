#include "scheduler/planner/advise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/plan/memory.h"

namespace troupe {
namespace {

// Of a step.
constexpr double kWorthSaying = 0.01;
constexpr double kMuch = 0.05;

// What a step goes into. The parts of all are all of it.
struct Part {
  const char* name;
  double (ExplainedWay::*share)() const;
  double Seconds(const ExplainedWay& way) const {
    return (way.*share)() * way.step_seconds();
  }
};
constexpr Part kParts[] = {
    {"compute", &ExplainedWay::compute_share},
    {"communication not hidden", &ExplainedWay::exposed_share},
    {"waits for other ranks and tiers", &ExplainedWay::waiting_share}};

std::string LimitOf(const ExplainedWay& way) {
  const Part* largest = &kParts[0];
  for (const Part& part : kParts) {
    if (part.Seconds(way) > largest->Seconds(way)) largest = &part;
  }
  return absl::StrFormat("limited by %s, %.0f %% of the step", largest->name,
                         100 * (way.*largest->share)());
}

// The largest differences first.
std::string BehindText(const ExplainedWay& way, const ExplainedWay& first) {
  struct More {
    const char* name;
    double part;
  };
  const double step = first.step_seconds();
  if (!(step > 0)) return "";
  std::vector<More> all;
  for (const Part& part : kParts) {
    const double part_more = (part.Seconds(way) - part.Seconds(first)) / step;
    if (std::abs(part_more) >= kWorthSaying) {
      all.push_back({part.name, part_more});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const More& a, const More& b) {
    return a.part > b.part;
  });
  const double behind = way.step_seconds() / step - 1;
  if (behind < kWorthSaying / 2) return "as quick as the first";
  return absl::StrFormat(
      "%.0f %% behind the first%s%s", 100 * behind, all.empty() ? "" : ": ",
      absl::StrJoin(all, ", ", [](std::string* out, const More& more) {
        absl::StrAppendFormat(out, "%s %+.0f %%", more.name, 100 * more.part);
      }));
}

using Seconds = std::function<double(const ExplainedWay& way)>;

// Of the way at `index`, would it take `seconds`, and others `of`: 1 is the
// first. Of equal ones the earlier stays in front. Those of which that is
// not known (0) do not count: they are behind.
int PlaceAmong(const Explanation& explanation, int index, double seconds,
               const Seconds& of) {
  int place = 1;
  for (int i = 0; i < explanation.ways_size(); ++i) {
    const ExplainedWay& other = explanation.ways(i);
    if (i == index || !other.fits() || of(other) == 0) continue;
    place += i < index ? of(other) <= seconds : of(other) < seconds;
  }
  return place;
}

// `now` is where it stands.
std::string PlaceText(int place, int now) {
  const char* const when = place == now ? "still" : "then";
  return place == 1 ? absl::StrCat(when, " the first")
                    : absl::StrCat(when, " number ", place);
}

// What twice the bandwidth is worth; the links that are worth most.
std::string LinksText(const Explanation& explanation, int index) {
  struct Faster {
    const char* name;
    bool there;
    Seconds seconds;
  };
  const ExplainedWay& way = explanation.ways(index);
  const bool within = way.has_step_seconds_links_within_hosts();
  const bool between = way.has_step_seconds_links_between_hosts();
  const std::vector<Faster> all = {
      {between ? "links within hosts" : "links", within,
       &ExplainedWay::step_seconds_links_within_hosts},
      {within ? "links between hosts" : "links", between,
       &ExplainedWay::step_seconds_links_between_hosts}};
  const Faster* best = nullptr;
  for (const Faster& faster : all) {
    if (!faster.there) continue;
    if (best == nullptr || faster.seconds(way) < best->seconds(way)) {
      best = &faster;
    }
  }
  if (best == nullptr || !(way.step_seconds() > 0)) return "";
  const double less = 1 - best->seconds(way) / way.step_seconds();
  if (less < kWorthSaying) {
    return way.exposed_share() < kMuch
               ? ""
               : "; that is latency: links of 2x change less than 1 %";
  }
  const int place =
      PlaceAmong(explanation, index, best->seconds(way), best->seconds);
  return absl::StrFormat("; %s of 2x: -%.0f %%, %s", best->name, 100 * less,
                         PlaceText(place, index + 1));
}

}  // namespace

std::string AdviceOf(const Explanation& explanation, int index) {
  const ExplainedWay& way = explanation.ways(index);
  return (index == 0 ? LimitOf(way) : BehindText(way, explanation.ways(0))) +
         LinksText(explanation, index);
}

std::string LackText(const ExplainedWay& way) {
  const std::string memory = absl::StrCat(TierText(way.tier()), " memory: ");
  if (way.budget_bytes() == 0) return absl::StrCat(memory, "there is none");
  return absl::StrFormat("%s%.2fx of what there is", memory,
                         static_cast<double>(way.memory_bytes()) /
                             static_cast<double>(way.budget_bytes()));
}

std::string NoRemedyText(const ExplainedWay& way) {
  return absl::StrCat(LackText(way),
                      "; neither memory.recompute nor parallelism.zero makes "
                      "it fit");
}

std::string RemedyText(const Explanation& explanation, int index,
                       const CheapestRemedy& remedy) {
  const ExplainedWay& way = explanation.ways(index);
  // With the remedy it may be what stands further up: that is no other way.
  constexpr double kAlike = 1e-6;
  const int place = PlaceAmong(
      explanation, index,
      way.step_seconds() * (1 + remedy.longer) * (1 - kAlike),
      [](const ExplainedWay& other) { return other.step_seconds(); });
  return absl::StrCat(LackText(way), "; ", remedy.change, " fits, ",
                      PlaceText(place, 0));
}

}  // namespace troupe
