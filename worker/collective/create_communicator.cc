#include "worker/collective/create_communicator.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/ways.h"
#include "worker/collective/gloo/gloo_communicator.h"
#include "worker/collective/in_process/in_process_communicator.h"
#include "worker/collective/levels.h"
#include "worker/collective/nccl/nccl_communicator.h"
#include "worker/collective/shared_memory/shared_memory_communicator.h"
#include "worker/collective/staged/staged_communicator.h"

namespace troupe {
namespace {

struct Backend {
  const char* name;
  absl::StatusOr<std::unique_ptr<Communicator>> (*create)(
      const CommunicatorSeat& seat);
  // What takes its place where it says FailedPrecondition, as all members of
  // the group then do.
  const char* fallback = nullptr;
  // Whether it moves memory of a device; else that is staged through the host.
  bool moves_device_memory = false;
};

constexpr Backend kBackends[] = {
    {"in_process", CreateInProcess},
    {"shared_memory", CreateSharedMemory, /*fallback=*/"gloo"},
    {"gloo", CreateGloo},
    {"nccl", CreateNccl, /*fallback=*/nullptr, /*moves_device_memory=*/true},
};

const Backend* FindBackend(const std::string& name) {
  for (const Backend& backend : kBackends) {
    if (name == backend.name) return &backend;
  }
  return nullptr;
}

absl::Status AbortOf(const CommunicatorSeat& seat) {
  return seat.abort == nullptr ? absl::OkStatus() : seat.abort->status();
}

absl::StatusOr<std::unique_ptr<Communicator>> Create(
    const Backend& backend, const CommunicatorSeat& seat) {
  RETURN_IF_ERROR(AbortOf(seat));
  absl::StatusOr<std::unique_ptr<Communicator>> communicator =
      backend.create(seat);
  // What an abort breaks fails in many ways.
  if (!communicator.ok()) RETURN_IF_ERROR(AbortOf(seat));
  const bool on_host = seat.device == nullptr || seat.device->has_host_memory();
  if (!communicator.ok() || on_host || backend.moves_device_memory) {
    return communicator;
  }
  return StageThroughHost(*std::move(communicator), *seat.device, seat.staging);
}

// Whether the steps of a group move host memory, as its levels do.
absl::Status CheckLevelBackends(const Group& group,
                                const Group::Carrier& carrier, int rank) {
  std::vector<std::string> names = {carrier.backend()};
  for (int l = 0; l < group.levels_size(); ++l) {
    names.push_back(BackendOn(carrier, l, NumberOn(group.levels(l), rank)));
  }
  for (const std::string& name : names) {
    const Backend* const backend = FindBackend(name);
    if (backend != nullptr && !backend->moves_device_memory) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "group ", group.name(), ": levels cannot be over backend \"", name,
        "\"; scheduler and worker must be of one build"));
  }
  return absl::OkStatus();
}

std::vector<bool> UsedLevels(const Group& group) {
  std::vector<bool> used(group.levels_size());
  for (const Group::Way& way : group.ways()) {
    for (const Group::Step& step : way.steps()) used[step.level()] = true;
  }
  return used;
}

// What the member of the seat's group brings to its communicator on the level.
CommunicatorSeat SeatOn(const Group::Level& level, int index,
                        const CommunicatorSeat& seat) {
  CommunicatorSeat of_level = seat;
  of_level.group.name = absl::StrCat(seat.group.name, "/", index, ".",
                                     NumberOn(level, seat.rank));
  of_level.group.ranks.clear();
  for (const int member : MembersOn(level, seat.rank)) {
    of_level.group.ranks.push_back(seat.group.ranks[member]);
  }
  of_level.rank = PlaceOn(level, seat.rank);
  of_level.in_order = level.in_order();
  return of_level;
}

}  // namespace

std::vector<std::string> CommunicatorBackends() {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const std::string& backend, const CommunicatorSeat& seat) {
  CHECK(seat.store != nullptr && seat.rank >= 0 &&
        seat.rank < static_cast<int>(seat.group.ranks.size()))
      << "seat " << seat.rank << " of group " << seat.group.name;
  const Backend* const found = FindBackend(backend);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "communicator backend ", backend, " is unknown; there are ",
        absl::StrJoin(CommunicatorBackends(), ", ")));
  }
  auto communicator = Create(*found, seat);
  if (!absl::IsFailedPrecondition(communicator.status()) ||
      found->fallback == nullptr) {
    return communicator;
  }
  LogWarning(absl::StrCat(communicator.status().message(), "; it uses ",
                          found->fallback, " instead"));
  return CreateCommunicator(std::string(found->fallback), seat);
}

bool MovesDeviceMemory(const Group::Carrier& carrier) {
  const Backend* const backend = FindBackend(carrier.backend());
  return carrier.staged() ||
         (backend != nullptr && backend->moves_device_memory);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const Group::Carrier& carrier, CommunicatorSeat seat) {
  if (!MovesDeviceMemory(carrier)) seat.device = nullptr;
  return CreateCommunicator(carrier.backend(), seat);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const Group& group, int number, CommunicatorSeat seat) {
  const absl::Status sound =
      CheckWays(group, static_cast<int>(seat.group.ranks.size()));
  if (!sound.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        sound.message(), "; scheduler and worker must be of one build"));
  }
  const Group::Carrier& carrier = CarrierOf(group, number);
  if (!HasSteps(group)) return CreateCommunicator(carrier, std::move(seat));
  RETURN_IF_ERROR(CheckLevelBackends(group, carrier, seat.rank));
  Device* const device = carrier.staged() ? seat.device : nullptr;
  seat.device = nullptr;
  seat.watch = WatchOf(seat);
  LevelParts parts;
  // The first, so that a member that does not come is missed here, by all.
  ASSIGN_OR_RETURN(parts.flat, CreateCommunicator(carrier.backend(), seat));
  const std::vector<bool> used = UsedLevels(group);
  parts.levels.resize(group.levels_size());
  for (int l = 0; l < group.levels_size(); ++l) {
    if (!used[l]) continue;
    const Group::Level& level = group.levels(l);
    ASSIGN_OR_RETURN(
        parts.levels[l],
        CreateCommunicator(BackendOn(carrier, l, NumberOn(level, seat.rank)),
                           SeatOn(level, l, seat)));
  }
  auto communicator =
      NewLevelsCommunicator(group, std::move(parts), seat.watch);
  if (device == nullptr || device->has_host_memory()) return communicator;
  return StageThroughHost(std::move(communicator), *device, seat.staging);
}

}  // namespace troupe
