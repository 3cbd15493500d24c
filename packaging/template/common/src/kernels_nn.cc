#include "backend.h"
#include "tfplug/backend/ops/batch_norm.h"
#include "tfplug/backend/ops/conv.h"
#include "tfplug/backend/ops/fused.h"
#include "tfplug/backend/ops/pool.h"
#include "tfplug/backend/ops/resize.h"
#include "tfplug/backend/ops/softmax.h"
#include "tfplug/backend/ops/spatial.h"
#include "tfplug/backend/ops/training.h"
#include "tfplug/backend/ops/variables.h"
#include "tfplug/backend/register.h"

// tfplug/backend/ops/all.h lists all families.
TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::BatchNormOps,
                        tfplug::ConvOps, tfplug::FusedOps, tfplug::PoolOps,
                        tfplug::ResizeOps, tfplug::SoftmaxOps,
                        tfplug::SpatialOps, tfplug::TrainingOps,
                        tfplug::VariableOps);
