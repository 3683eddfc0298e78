#include "proto/plan/ways.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

absl::Status WayFault(const std::string& what) {
  return absl::FailedPreconditionError(what);
}

absl::Status CheckLevel(const Group::Level& level, int members) {
  const int64_t ranks = int64_t{level.size()} * level.stride();
  if (level.size() >= 2 && level.stride() >= 1 && members % ranks == 0) {
    return absl::OkStatus();
  }
  return WayFault(absl::StrCat("level ", level.name(), " has ", level.size(),
                               " members, ", level.stride(), " apart, of ",
                               members));
}

// What the members hold after some steps. By symmetry one description is that
// of all: each holds the piece of the buffer that its places on some levels
// name, added up over the members of some levels.
class Holding {
 public:
  Holding(const Group& group, const Group::Way& way)
      : group_(group), way_(way), levels_(group.levels_size()) {}

  // Runs the steps. An error where one cannot be, or is not the last word.
  absl::Status Run() {
    Begin();
    for (int s = 0; s < way_.steps_size(); ++s) {
      const std::string fault = Step(way_.steps(s));
      if (fault.empty()) continue;
      return WayFault(absl::StrCat(
          "step ", s, " (", Collective_Name(way_.steps(s).collective()), " ",
          group_.levels(way_.steps(s).level()).name(), ") ", fault));
    }
    return End();
  }

 private:
  struct OnLevel {
    bool used = false;    // some step names it
    bool cut = false;     // each place holds a piece of its own
    bool summed = false;  // over its members
    bool known = false;   // broadcast: all its members have what is sent
    bool at_root = false;  // the sum is at place 0 only
    bool turned = false;   // all-to-all: blocks are at their places on it
  };

  void Begin() {
    for (const Group::Step& step : way_.steps()) {
      levels_[step.level()].used = true;
    }
    if (way_.collective() != ALL_GATHER) return;
    for (OnLevel& level : levels_) level.cut = level.used;
  }

  // Why not; empty: done.
  std::string Step(const Group::Step& step) {
    OnLevel& level = levels_[step.level()];
    const bool sums =
        way_.collective() == ALL_REDUCE || way_.collective() == REDUCE_SCATTER;
    switch (step.collective()) {
      case REDUCE_SCATTER:
      case ALL_REDUCE:
        if (!sums) return "adds up what is to be moved only";
        if (level.cut) return "adds up pieces that are not the same";
        if (level.summed) return "adds each summand a second time";
        level.summed = true;
        level.cut = step.collective() == REDUCE_SCATTER;
        if (level.cut) cuts_.push_back(step.level());
        return "";
      case ALL_GATHER:
        return Gather(step.level());
      case REDUCE:
        if (!sums) return "adds up what is to be moved only";
        if (level.cut) return "adds up pieces that are not the same";
        if (level.summed) return "adds each summand a second time";
        level.summed = level.at_root = true;
        return "";
      case BROADCAST:
        if (sums) {
          if (!level.at_root) return "sends what is there";
          level.at_root = false;
          return "";
        }
        if (way_.collective() != BROADCAST) return "moves what others need";
        if (level.known) return "sends what is there";
        level.known = true;
        return "";
      case ALL_TO_ALL:
        if (way_.collective() != ALL_TO_ALL) return "moves what others need";
        if (level.turned) return "moves blocks that are at their places";
        level.turned = true;
        return "";
      default:
        return "is no step of a way";
    }
  }

  // Within a piece of a level that was cut before lie those of levels that were
  // cut later, so they come together first. The blocks of an all-gather are cut
  // by all levels at once (BlockOf), and come together in any order.
  std::string Gather(int index) {
    OnLevel& level = levels_[index];
    if (!level.cut) return "gathers what is whole";
    if (way_.collective() == ALL_REDUCE) {
      if (cuts_.back() != index) return "gathers pieces that are cut further";
      cuts_.pop_back();
    } else if (way_.collective() != ALL_GATHER) {
      return "gathers what is to be scattered";
    }
    level.cut = false;
    return "";
  }

  absl::Status End() const {
    for (int l = 0; l < group_.levels_size(); ++l) {
      const OnLevel& level = levels_[l];
      if (!level.used) continue;
      const std::string name = absl::StrCat("level ", group_.levels(l).name());
      const bool wants_sum = way_.collective() == ALL_REDUCE ||
                             way_.collective() == REDUCE_SCATTER;
      if (wants_sum && !level.summed) {
        return WayFault(absl::StrCat(name, " is not added up over"));
      }
      if (level.at_root) {
        return WayFault(absl::StrCat(name, " has its sum at one place only"));
      }
      if (level.cut != (way_.collective() == REDUCE_SCATTER)) {
        return WayFault(absl::StrCat(name, level.cut ? " has pieces at the end"
                                                     : " has no pieces at the "
                                                       "end"));
      }
    }
    return absl::OkStatus();
  }

  const Group& group_;
  const Group::Way& way_;
  std::vector<OnLevel> levels_;
  std::vector<int> cuts_;  // of an all-reduce, the last one innermost
};

// The levels of its steps are all factors of the members: each stride is the
// product of the sizes below it, so that the places tell members apart.
absl::Status CheckFactors(const Group& group, const Group::Way& way,
                          int members) {
  std::set<int> used;
  for (const Group::Step& step : way.steps()) {
    if (step.level() < 0 || step.level() >= group.levels_size()) {
      return WayFault(absl::StrCat("level ", step.level(), " is none of ",
                                   group.levels_size()));
    }
    used.insert(step.level());
  }
  std::vector<const Group::Level*> levels;
  for (const int l : used) levels.push_back(&group.levels(l));
  std::sort(levels.begin(), levels.end(),
            [](const Group::Level* a, const Group::Level* b) {
              return a->stride() < b->stride();
            });
  int64_t ranks = 1;
  bool tell_apart = true;
  for (const Group::Level* const level : levels) {
    tell_apart = tell_apart && level->stride() == ranks;
    ranks *= level->size();
    if (!tell_apart || ranks > members) break;
  }
  if (tell_apart && ranks == members) return absl::OkStatus();
  return WayFault(
      absl::StrCat("its levels are no factors of ", members, " members"));
}

absl::Status CheckWay(const Group& group, const Group::Way& way, int members) {
  if (way.pieces() < 0 || way.pieces() > kWayPiecesMax) {
    return WayFault(absl::StrCat("it is cut into ", way.pieces(),
                                 " pieces, where at most ", kWayPiecesMax,
                                 " are possible"));
  }
  if (way.steps().empty()) {
    if (way.pieces() <= 1) return absl::OkStatus();
    return WayFault("it is cut into pieces but has no steps");
  }
  switch (way.collective()) {
    case ALL_REDUCE:
    case REDUCE_SCATTER:
    case ALL_GATHER:
    case BROADCAST:
    case ALL_TO_ALL:
      break;
    default:
      return WayFault("it is carried out flat only");
  }
  RETURN_IF_ERROR(CheckFactors(group, way, members));
  return Holding(group, way).Run();
}

absl::Status CheckCarrier(const Group& group, const Group::Carrier& carrier,
                          int members) {
  if (carrier.levels().empty()) return absl::OkStatus();
  if (carrier.levels_size() != group.levels_size()) {
    return WayFault(absl::StrCat("carries ", carrier.levels_size(), " of ",
                                 group.levels_size(), " levels"));
  }
  for (int l = 0; l < group.levels_size(); ++l) {
    const int backends = carrier.levels(l).backends_size();
    const int count = CountOn(group.levels(l), members);
    if (backends > 1 && backends != count) {
      return WayFault(absl::StrCat("level ", group.levels(l).name(), " names ",
                                   backends, " backends for ", count,
                                   " communicators"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWaysOf(const Group& group, int members) {
  if (members < 1) return WayFault("has no members");
  for (const Group::Level& level : group.levels()) {
    RETURN_IF_ERROR(CheckLevel(level, members));
  }
  const Group::Way* before = nullptr;
  for (const Group::Way& way : group.ways()) {
    const std::string name = absl::StrCat("way ", way.row(), " of ",
                                          Collective_Name(way.collective()));
    RETURN_IF_ERROR(Annotate(CheckWay(group, way, members), name));
    const bool follows = before == nullptr ||
                         before->collective() < way.collective() ||
                         (before->collective() == way.collective() &&
                          before->bytes_min() < way.bytes_min());
    if (!follows || way.bytes_min() < 0) {
      return WayFault(absl::StrCat(name, " is out of order"));
    }
    before = &way;
  }
  for (const Group::Carrier& carrier : group.carriers()) {
    RETURN_IF_ERROR(CheckCarrier(group, carrier, members));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CollectiveText(Collective collective) {
  std::string text = absl::AsciiStrToLower(Collective_Name(collective));
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

absl::Status CheckWays(const Group& group, int members) {
  return Annotate(CheckWaysOf(group, members),
                  absl::StrCat("group ", group.name()));
}

int PlaceOn(const Group::Level& level, int member) {
  return member / level.stride() % level.size();
}

std::vector<int> MembersOn(const Group::Level& level, int member) {
  const int first = member - PlaceOn(level, member) * level.stride();
  std::vector<int> members(level.size());
  for (int place = 0; place < level.size(); ++place) {
    members[place] = first + place * level.stride();
  }
  return members;
}

int NumberOn(const Group::Level& level, int member) {
  const int64_t block = int64_t{level.stride()} * level.size();
  return static_cast<int>(member / block * level.stride() +
                          member % level.stride());
}

int CountOn(const Group::Level& level, int members) {
  return members / level.size();
}

Collective WayCollective(Collective collective) {
  return collective == REDUCE ? ALL_REDUCE : collective;
}

const Group::Way* WayOf(const Group& group, Collective collective,
                        int64_t bytes) {
  const Collective of = WayCollective(collective);
  const Group::Way* last = nullptr;
  for (const Group::Way& way : group.ways()) {
    if (way.collective() == of && way.bytes_min() <= bytes) last = &way;
  }
  return last == nullptr || last->steps().empty() ? nullptr : last;
}

bool HasSteps(const Group& group) {
  return std::any_of(
      group.ways().begin(), group.ways().end(),
      [](const Group::Way& way) { return !way.steps().empty(); });
}

bool HaveSameWays(const Plan& a, const Plan& b) {
  const auto ways_of = [](const Group& group) {
    Group ways;
    ways.set_name(group.name());
    *ways.mutable_levels() = group.levels();
    *ways.mutable_ways() = group.ways();
    return ways.SerializeAsString();
  };
  return std::equal(a.groups().begin(), a.groups().end(), b.groups().begin(),
                    b.groups().end(), [&](const Group& x, const Group& y) {
                      return ways_of(x) == ways_of(y);
                    });
}

bool TakesPart(const Group& group, const Group::Way& way, int member,
               const RootedStep& at) {
  std::vector<bool> at_root(group.levels_size());  // members elsewhere wait
  const int steps = way.steps_size();
  if (way.collective() == BROADCAST) {
    for (int s = at.step + 1; s < steps; ++s) {
      at_root[way.steps(s).level()] = true;
    }
  } else {
    for (int s = 0; s < at.step; ++s) {
      const Collective step = way.steps(s).collective();
      if (step == REDUCE) at_root[way.steps(s).level()] = true;
      if (step == BROADCAST) at_root[way.steps(s).level()] = false;
    }
    at_root[way.steps(at.step).level()] = false;
  }
  for (int l = 0; l < group.levels_size(); ++l) {
    const Group::Level& level = group.levels(l);
    if (at_root[l] && PlaceOn(level, member) != PlaceOn(level, at.root)) {
      return false;
    }
  }
  return true;
}

const std::string& BackendOn(const Group::Carrier& carrier, int level,
                             int number) {
  static const std::string& none = *new std::string();
  if (level >= carrier.levels_size()) return none;
  const auto& backends = carrier.levels(level).backends();
  if (backends.empty()) return none;
  return backends.size() == 1 ? backends[0] : backends.at(number);
}

}  // namespace troupe
