#include "scheduler/passes/reduce_gradients.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// Units [first, first + count) whose gradients one group sums; of one unit,
// some of its parts.
struct Bucket {
  int first = 0;
  int count = 0;
  int part = 0;
  int part_count = 1;
  int group = 0;
  ElementType type = F32;
  int64_t bytes = 0;
  // All that is trained of each unit, and no slices: those of several units are
  // no one range.
  bool whole = true;
};

// Behind the last part that differs from this one in nothing but its rule: the
// same ranks sum their gradients, and have the same slices.
int EndOfParts(const Unit& unit, const Placement& placement, int part) {
  const auto name = [&unit](int p) {
    Unit::Part alike = unit.parts(p);
    alike.clear_elements();
    alike.clear_rule();
    alike.clear_whole_parameters();
    return alike.SerializeAsString();
  };
  int end = part + 1;
  while (end < unit.parts_size() &&
         unit.parts(end).rule() != unit.parts(end - 1).rule() &&
         placement.parts(end).dealt() == placement.parts(part).dealt() &&
         name(end) == name(part)) {
    ++end;
  }
  return end;
}

std::vector<Bucket> BucketsOf(const Plan& plan, const Role& role) {
  const double bytes_max =
      plan.job().parallelism().bucket_megabytes() * 1024 * 1024;
  std::vector<Bucket> buckets;
  for (int i = role.placements_size(); i-- > 0;) {
    const Placement& placement = role.placements(i);
    const int u = placement.unit();
    const Unit& unit = plan.units(u);
    const bool on_device =
        TierOfFlat(unit, Buffer::PARAMETER_GRADIENTS) == DEVICE;
    const ElementType type = GradientsType(unit);
    int end = 0;
    for (int p = 0; p < unit.parts_size(); p = end) {
      end = EndOfParts(unit, placement, p);
      int64_t bytes = 0;
      for (int q = p; q < end; ++q) {
        bytes += unit.parts(q).elements() * BytesOfElement(type);
      }
      if (!placement.parts(p).has_summed() || bytes == 0) continue;
      const int group = placement.parts(p).summed();
      const bool whole =
          p == 0 && end == TrainedParts(unit) && !IsDealt(placement);
      // Copies of what rests elsewhere are no one range either.
      const bool joins =
          on_device && whole && !buckets.empty() && buckets.back().whole &&
          buckets.back().group == group && buckets.back().first == u + 1 &&
          buckets.back().type == type &&
          buckets.back().bytes + bytes <= bytes_max;
      if (!joins) {
        buckets.push_back({.first = u,
                           .part = p,
                           .part_count = end - p,
                           .group = group,
                           .type = type,
                           .whole = whole});
      }
      buckets.back().first = u;
      buckets.back().count += 1;
      buckets.back().bytes += bytes;
    }
  }
  return buckets;
}

// Whether it takes a unit's gradients to where they rest in slices.
bool DealsOut(const Instruction& instruction) {
  return instruction.kind() == Instruction::SCATTER_GRADS ||
         instruction.kind() == Instruction::PUSH;
}

// For each unit, the last instruction that adds to its gradients, or deals them
// out.
std::vector<int> LastAdded(const Plan& plan, const UnitPasses& passes,
                           const Program& program) {
  std::vector<int> last(plan.units_size(), -1);
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (DealsOut(instruction)) last[instruction.unit()] = i;
    if (instruction.kind() != Instruction::BACKWARD_WEIGHT) continue;
    for (const int u : AddsToGradientsOf(plan, passes, instruction.unit())) {
      last[u] = i;
    }
  }
  return last;
}

// The last instruction behind which passes may wait for what is behind a sum of
// gradients, other stages then for these passes, and the sum for other stages;
// -1: there is none. Passes wait for the memory of gradients that are scattered,
// and for moves between tiers that stand behind those of the sum.
int LastWaitedFor(const Plan& plan, const Program& program) {
  const bool stay =
      std::all_of(plan.units().begin(), plan.units().end(),
                  [](const Unit& unit) { return GradientsStayOnDevice(unit); });
  if (!stay) return program.instructions_size() - 1;
  for (int i = program.instructions_size(); i-- > 0;) {
    if (DealsOut(program.instructions(i))) return i;
  }
  return -1;
}

// A bucket as all roles of its group see it.
using BucketName = std::tuple<int, int, int>;  // group, first unit, part

BucketName NameOf(const Bucket& bucket) {
  return {bucket.group, bucket.first, bucket.part};
}

// Where in their programs roles are ready for buckets.
class Readiness {
 public:
  explicit Readiness(const Plan& plan) {
    const UnitPasses passes(plan);
    for (const Role& role : plan.roles()) {
      const Program& program = *FindProgram(role, Program::TRAIN);
      const std::vector<int> last = LastAdded(plan, passes, program);
      const int waited_for = LastWaitedFor(plan, program);
      std::vector<Ready>& ready = buckets_.emplace_back();
      for (const Bucket& bucket : BucketsOf(plan, role)) {
        const auto begin = last.begin() + bucket.first;
        int index = *std::max_element(begin, begin + bucket.count);
        if (Spans(plan.mesh(), plan.groups(bucket.group), "pipeline")) {
          index = std::max(index, waited_for);
        }
        ready.push_back({bucket, index});
        double& when = shares_[NameOf(bucket)];
        when = std::max(
            when, static_cast<double>(index) / program.instructions_size());
      }
    }
  }

  struct Ready {
    Bucket bucket;
    int index = -1;  // of the instruction behind which it may stand
  };
  // In the order of all roles, each no earlier than the one before.
  std::vector<Ready> Of(int role) const {
    std::vector<Ready> ready = buckets_[role];
    std::stable_sort(ready.begin(), ready.end(),
                     [this](const Ready& a, const Ready& b) {
                       return KeyOf(a.bucket) < KeyOf(b.bucket);
                     });
    for (size_t i = 1; i < ready.size(); ++i) {
      ready[i].index = std::max(ready[i].index, ready[i - 1].index);
    }
    return ready;
  }

 private:
  // Neighbours in backward order come first, last units first.
  std::tuple<double, int, int, int> KeyOf(const Bucket& bucket) const {
    return {shares_.at(NameOf(bucket)), -bucket.first, bucket.part,
            bucket.group};
  }

  std::vector<std::vector<Ready>> buckets_;  // by role
  std::map<BucketName, double> shares_;
};

void Emit(const Bucket& bucket, Program& program) {
  Instruction& reduce = *program.add_instructions();
  reduce.set_kind(Instruction::REDUCE_GRADS);
  reduce.set_lane(LaneFor(Instruction::REDUCE_GRADS));
  reduce.set_unit(bucket.first);
  if (bucket.count > 1) reduce.set_unit_count(bucket.count);
  reduce.set_part(bucket.part);
  if (bucket.count == 1 && bucket.part_count > 1) {
    reduce.set_part_count(bucket.part_count);
  }
  reduce.set_group(bucket.group);
}

}  // namespace

void ReduceGradients(Draft& draft) {
  const Readiness readiness(draft.plan);
  for (int r = 0; r < draft.plan.roles_size(); ++r) {
    Program* const program =
        FindProgram(*draft.plan.mutable_roles(r), Program::TRAIN);
    const std::vector<Readiness::Ready> ready = readiness.Of(r);
    auto next = ready.begin();
    Program with_reductions;
    with_reductions.set_kind(Program::TRAIN);
    for (int i = 0; i < program->instructions_size(); ++i) {
      *with_reductions.add_instructions() = program->instructions(i);
      for (; next != ready.end() && next->index <= i; ++next) {
        Emit(next->bucket, with_reductions);
      }
    }
    *program = with_reductions;
  }
}

}  // namespace troupe
