#include "tests/worker/collective/ranks.h"

#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/collective/on_device.h"
#include "worker/collective/create_communicator.h"

namespace troupe {

int GlobalRank(int index) { return 7 + 3 * index; }

CommunicatorSeat TestSeat(int ranks, int index, KeyValueStore* store) {
  CommunicatorSeat seat;
  seat.group.name = "test-group";
  for (int i = 0; i < ranks; ++i) seat.group.ranks.push_back(GlobalRank(i));
  seat.rank = index;
  seat.store = store;
  return seat;
}

std::unique_ptr<Device> SeatDevice(const RanksOptions& options, int index,
                                   CommunicatorSeat& seat) {
  if (options.new_device == nullptr) return nullptr;
  std::unique_ptr<Device> device = options.new_device(index);
  seat.device = device.get();
  return device;
}

void OnThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateFor(
    const RanksOptions& options, const CommunicatorSeat& seat) {
  return options.create != nullptr ? options.create(seat)
                                   : CreateCommunicator(options.backend, seat);
}

void TogetherOwning(
    const RanksOptions& options,
    const std::function<void(std::unique_ptr<Communicator>)>& body) {
  InMemoryStore store;
  OnThreads(options.ranks, [&](int index) {
    CommunicatorSeat seat = TestSeat(options.ranks, index, &store);
    const std::unique_ptr<Device> device = SeatDevice(options, index, seat);
    auto communicator = CreateFor(options, seat);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(device == nullptr
             ? *std::move(communicator)
             : BuffersOnDevice(*std::move(communicator),
                               {.device = *device, .meet = options.meet}));
  });
}

void Together(const RanksOptions& options,
              const std::function<void(Communicator&)>& body) {
  TogetherOwning(options, [&](std::unique_ptr<Communicator> communicator) {
    body(*communicator);
  });
}

}  // namespace troupe
