#include "scheduler/tiers/offload.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Offload, AllRestsOnTheDeviceUnlessSaidOtherwise) {
  const MemorySpec memory;
  for (int kind = 1; kind <= Buffer::Kind_MAX; ++kind) {
    if (!Buffer::Kind_IsValid(kind)) continue;
    // Of the state, on its way to a checkpoint or for a recovery of the job.
    const bool copy = kind == Buffer::SNAPSHOT_COPY ||
                      kind == Buffer::STATE_COPY || kind == Buffer::PEER_COPY;
    EXPECT_EQ(RestsIn(memory, static_cast<Buffer::Kind>(kind)),
              copy ? HOST : DEVICE)
        << Buffer::Kind_Name(static_cast<Buffer::Kind>(kind));
  }
  EXPECT_FALSE(StepsOnHost(memory));
}

TEST(Offload, MasterWeightsRestWithTheStates) {
  MemorySpec memory;
  memory.set_optimizer("nvme");
  EXPECT_EQ(RestsIn(memory, Buffer::OPTIMIZER_STATE), NVME);
  EXPECT_EQ(RestsIn(memory, Buffer::MASTER_WEIGHTS), NVME);
  EXPECT_EQ(RestsIn(memory, Buffer::PARAMETERS), DEVICE);
  EXPECT_TRUE(StepsOnHost(memory));
}

TEST(Offload, WhatChunksAreOf) {
  MemorySpec memory;
  EXPECT_FALSE(MayStayOnDevice(memory));
  memory.set_optimizer("nvme");
  EXPECT_FALSE(MayStayOnDevice(memory)) << "used on the host";
  memory.set_gradients("host");
  EXPECT_TRUE(MayStayOnDevice(memory));
  memory.set_gradients("device");
  memory.set_activations("nvme");
  EXPECT_TRUE(MayStayOnDevice(memory));
  memory.set_activations("device");
  memory.set_parameters("host");
  EXPECT_TRUE(MayStayOnDevice(memory));
}

TEST(Offload, EachFieldIsOfItsOwnKinds) {
  MemorySpec memory;
  memory.set_parameters("nvme");
  memory.set_gradients("host");
  memory.set_activations("host");
  EXPECT_EQ(RestsIn(memory, Buffer::PARAMETERS), NVME);
  EXPECT_EQ(RestsIn(memory, Buffer::PARAMETER_GRADIENTS), HOST);
  EXPECT_EQ(RestsIn(memory, Buffer::STASH), HOST);
  EXPECT_EQ(RestsIn(memory, Buffer::ACTIVATION), HOST);
  // Of a micro-batch, while they are whole; gradients of activations.
  EXPECT_EQ(RestsIn(memory, Buffer::UNSHARDED_GRADIENTS), DEVICE);
  EXPECT_EQ(RestsIn(memory, Buffer::GRADIENT), DEVICE);
  EXPECT_EQ(RestsIn(memory, Buffer::OPTIMIZER_STATE), DEVICE);
  EXPECT_FALSE(StepsOnHost(memory));
}

}  // namespace
}  // namespace troupe
