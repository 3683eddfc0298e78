// Tests of one NCCL communicator: a group of one, which NCCL allows. They skip,
// and say why, where there is no GPU.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_GROUP_OF_ONE_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_GROUP_OF_ONE_H_

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "worker/collective/nccl/comm.h"

namespace troupe {

class GroupOfOne : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
    device_ = *std::move(device);
    NcclComm::Place place;
    ASSERT_EQ(ncclGetUniqueId(&place.id), ncclSuccess);
    auto comm =
        NcclComm::Create(*device_, place, SteadyNow() + absl::Seconds(60));
    ASSERT_TRUE(comm.ok()) << comm.status();
    comm_ = *std::move(comm);
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<NcclComm> comm_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_NCCL_GROUP_OF_ONE_H_
