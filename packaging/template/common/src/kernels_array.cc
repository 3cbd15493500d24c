// Families of ops are registered in several files, which compile in parallel.
#include "backend.h"
#include "tfplug/backend/ops/array.h"
#include "tfplug/backend/ops/concat.h"
#include "tfplug/backend/ops/convert.h"
#include "tfplug/backend/ops/diagonal.h"
#include "tfplug/backend/ops/gather.h"
#include "tfplug/backend/ops/identity.h"
#include "tfplug/backend/ops/pad.h"
#include "tfplug/backend/ops/scan.h"
#include "tfplug/backend/ops/scatter.h"
#include "tfplug/backend/ops/slice.h"
#include "tfplug/backend/register.h"

TFPLUG_REGISTER_BACKEND(my_device::Backend, tfplug::ArrayOps, tfplug::ConcatOps,
                        tfplug::ConvertOps, tfplug::DiagonalOps,
                        tfplug::GatherOps, tfplug::IdentityOps, tfplug::PadOps,
                        tfplug::ScanOps, tfplug::ScatterOps, tfplug::SliceOps);
