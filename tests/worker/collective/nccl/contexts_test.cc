// On which GPUs a process has contexts: each takes some hundreds of MB, so a
// rank may have one on its own GPU and nowhere else, whatever its threads do.
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "tests/worker/collective/nccl/stand_in_gpus.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/enqueued/enqueued_communicator.h"
#include "worker/collective/nccl/nccl_transport.h"

namespace troupe {
namespace {

// On a thread that has not called CUDA before.
template <typename Body>
void OnFreshThread(const Body& body) {
  std::thread thread(body);
  thread.join();
}

TEST(ContextsTest, TheStandInCountsThemAsCudaMakesThem) {
  ResetStandInGpus();
  OnFreshThread([] {
    cudaSetDevice(3);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, 0);
    cudaEventDestroy(event);
  });
  EXPECT_EQ(StandInContexts(), std::set<int>{3});
  OnFreshThread([] { cudaDeviceSynchronize(); });
  EXPECT_EQ(StandInContexts(), (std::set<int>{0, 3}));
}

TEST(ContextsTest, AnyThreadMayUseADeviceAndItsFences) {
  ResetStandInGpus();
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Fence> before, fence;
  OnFreshThread([&] {
    auto opened = CudaDevice::Create(1);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device = *std::move(opened);
    device->PrepareQueue(QueueWork::kCopies);
    before = device->Record(FenceUse::kTiming);
    fence = device->Record(FenceUse::kTiming);
  });
  OnFreshThread([&] { EXPECT_TRUE(fence->HasRun()); });
  OnFreshThread([&] { EXPECT_TRUE(fence->Await().ok()); });
  OnFreshThread([&] { EXPECT_GT(fence->NanosSince(*before), 0); });
  OnFreshThread([&] { device->WaitFor(*fence); });
  OnFreshThread([&] { EXPECT_TRUE(device->Synchronize().ok()); });
  OnFreshThread([&] {
    const absl::StatusOr<void*> memory = device->Allocate(64);
    ASSERT_TRUE(memory.ok());
    device->Zero(*memory, 64);
    device->Free(*memory);
  });
  OnFreshThread([&] {
    const absl::StatusOr<void*> memory = device->AllocateHost(64);
    ASSERT_TRUE(memory.ok());
    device->FreeHost(*memory);
  });
  OnFreshThread([&] {
    before.reset();
    fence.reset();
  });
  OnFreshThread([&] { EXPECT_TRUE(device->StartAfresh().ok()); });
  OnFreshThread([&] { device.reset(); });
  EXPECT_EQ(StandInContexts(), std::set<int>{1});
}

// The watch asks whether an operation has run, and a thread of its own aborts
// NCCL: neither has called CUDA before.
TEST(ContextsTest, ACommunicatorThatIsWatchedAndAborted) {
  ResetStandInGpus();
  InMemoryStore store;
  OnThreads(2, [&](int rank) {
    auto device = CudaDevice::Create(1 + rank);
    ASSERT_TRUE(device.ok()) << device.status();
    auto host = CreateCommunicator("in_process", TestSeat(2, rank, &store));
    ASSERT_TRUE(host.ok()) << host.status();
    auto comm = NcclComm::Create(**device, {.rank = rank, .size = 2},
                                 absl::InfiniteFuture());
    ASSERT_TRUE(comm.ok()) << comm.status();
    CommunicatorSeat seat = TestSeat(2, rank, &store);
    seat.device = device->get();
    std::unique_ptr<Communicator> communicator = NewEnqueuedCommunicator(
        seat,
        {.meeting = std::make_unique<HostMeeting>(*std::move(host)),
         .transport = NewNcclTransport(
             {.device = **device, .rank = rank, .size = 2}, *std::move(comm))});
    SetEventsHaveRun(false);
    float sum = 0;
    EXPECT_TRUE(communicator
                    ->AllReduce(CommBuffer::Of(absl::MakeSpan(&sum, 1)),
                                ReduceOp::kSum, {.name = "x", .meet = false})
                    .ok());
    AwaitEventQueries(4);  // of the ranks' two watches
    communicator->Abort(absl::CancelledError("the job was cancelled"));
    AwaitNcclAborts(2);
    SetEventsHaveRun(true);
    communicator.reset();
  });
  EXPECT_EQ(StandInContexts(), (std::set<int>{1, 2}));
}

// What is left of a join that failed may go on another thread.
TEST(ContextsTest, ACommunicatorThatGoes) {
  ResetStandInGpus();
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<NcclComm> comm;
  OnFreshThread([&] {
    device = *CudaDevice::Create(1);
    comm = *NcclComm::Create(*device, {}, absl::InfiniteFuture());
  });
  OnFreshThread([&] { comm.reset(); });
  OnFreshThread([&] { device.reset(); });
  EXPECT_EQ(StandInContexts(), std::set<int>{1});
}

}  // namespace
}  // namespace troupe
