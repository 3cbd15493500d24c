// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_TRAINING_H_
#define TFPLUG_OP_KERNELS_TRAINING_H_

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/kernel/new_values.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/training_kernel.h"
#include "tfplug/ops/training.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Returns the optimizers: one function each, from the inputs of the op, in
// order, to the new values of its variables.
inline const std::vector<TrainingOp>& TrainingTable() {
  using V = Value;
  using One = std::array<Value, 1>;
  using Two = std::array<Value, 2>;
  using Three = std::array<Value, 3>;
  using Four = std::array<Value, 4>;
  static const auto* const table = new std::vector<TrainingOp>{
      Training<ops::ResourceApplyGradientDescent>(
          +[](V var, V lr, V grad) { return One{var - grad * lr}; }),
      Training<ops::ResourceApplyProximalGradientDescent,
               ops::ResourceSparseApplyProximalGradientDescent>(
          +[](V var, V lr, V l1, V l2, V grad) {
            return One{Shrink(var - grad * lr, lr, l1, l2)};
          }),
      Training<ops::ResourceApplyMomentum, ops::ResourceSparseApplyMomentum>(
          +[](V var, V accum, V lr, V grad, V momentum, bool nesterov) {
            accum = accum * momentum + grad;
            return Two{nesterov ? var - (grad * lr + accum * momentum * lr)
                                : var - accum * lr,
                       accum};
          },
          "use_nesterov"),
      Training<ops::ResourceApplyKerasMomentum,
               ops::ResourceSparseApplyKerasMomentum>(
          +[](V var, V accum, V lr, V grad, V momentum, bool nesterov) {
            accum = accum * momentum - grad * lr;
            return Two{
                nesterov ? var + (accum * momentum - grad * lr) : var + accum,
                accum};
          },
          "use_nesterov"),
      Training<ops::ResourceApplyAdam>(
          +[](V var, V m, V v, V beta1_power, V beta2_power, V lr, V beta1,
              V beta2, V epsilon, V grad, bool nesterov) {
            const V alpha = lr * Sqrt(1 - beta2_power) / (1 - beta1_power);
            m = m + (grad - m) * (1 - beta1);
            v = v + (grad * grad - v) * (1 - beta2);
            const V step = nesterov ? beta1 * m + (1 - beta1) * grad : m;
            return Three{var - step * alpha / (Sqrt(v) + epsilon), m, v};
          },
          "use_nesterov"),
      Training<ops::ResourceApplyAdamWithAmsgrad>(
          +[](V var, V m, V v, V vhat, V beta1_power, V beta2_power, V lr,
              V beta1, V beta2, V epsilon, V grad) {
            const V alpha = lr * Sqrt(1 - beta2_power) / (1 - beta1_power);
            m = m + (grad - m) * (1 - beta1);
            v = v + (grad * grad - v) * (1 - beta2);
            vhat = Max(vhat, v);
            return Four{var - m * alpha / (Sqrt(vhat) + epsilon), m, v, vhat};
          }),
      Training<ops::ResourceApplyAdaMax>(+[](V var, V m, V v, V beta1_power,
                                             V lr, V beta1, V beta2, V epsilon,
                                             V grad) {
        m = m + (grad - m) * (1 - beta1);
        v = Max(beta2 * v, Abs(grad));
        return Three{var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v};
      }),
      Training<ops::ResourceApplyAdagrad, ops::ResourceSparseApplyAdagrad>(
          +[](V var, V accum, V lr, V grad, bool update_slots) {
            if (update_slots) accum = accum + grad * grad;
            return Two{var - grad * lr * Rsqrt(accum), accum};
          },
          "update_slots"),
      Training<ops::ResourceApplyAdagradV2, ops::ResourceSparseApplyAdagradV2>(
          +[](V var, V accum, V lr, V epsilon, V grad, bool update_slots) {
            if (update_slots) accum = accum + grad * grad;
            return Two{var - grad * lr / (Sqrt(accum) + epsilon), accum};
          },
          "update_slots"),
      Training<ops::ResourceApplyAdagradDA, ops::ResourceSparseApplyAdagradDA>(
          +[](V, V accum, V squares, V grad, V lr, V l1, V l2, V step) {
            accum = accum + grad;
            squares = squares + grad * grad;
            const V shrunk = Sign(accum) * Max(Abs(accum) - l1 * step, 0);
            return Three{-lr * shrunk / (l2 * step * lr + Sqrt(squares)), accum,
                         squares};
          }),
      Training<ops::ResourceApplyProximalAdagrad,
               ops::ResourceSparseApplyProximalAdagrad>(
          +[](V var, V accum, V lr, V l1, V l2, V grad) {
            accum = accum + grad * grad;
            const V rate = lr * Rsqrt(accum);
            return Two{Shrink(var - grad * rate, rate, l1, l2), accum};
          }),
      Training<ops::ResourceApplyAdadelta, ops::ResourceSparseApplyAdadelta>(
          +[](V var, V accum, V accum_update, V lr, V rho, V epsilon, V grad) {
            accum = accum * rho + grad * grad * (1 - rho);
            const V update =
                Sqrt(accum_update + epsilon) * Rsqrt(accum + epsilon) * grad;
            return Three{var - update * lr, accum,
                         accum_update * rho + update * update * (1 - rho)};
          }),
      Training<ops::ResourceApplyRMSProp, ops::ResourceSparseApplyRMSProp>(
          +[](V var, V ms, V mom, V lr, V rho, V momentum, V epsilon, V grad) {
            ms = ms + (grad * grad - ms) * (1 - rho);
            mom = mom * momentum + grad * lr / Sqrt(ms + epsilon);
            return Three{var - mom, ms, mom};
          }),
      Training<ops::ResourceApplyCenteredRMSProp,
               ops::ResourceSparseApplyCenteredRMSProp>(
          +[](V var, V mg, V ms, V mom, V lr, V rho, V momentum, V epsilon,
              V grad) {
            ms = ms + (grad * grad - ms) * (1 - rho);
            mg = mg + (grad - mg) * (1 - rho);
            mom = mom * momentum + grad * lr / Sqrt(ms - mg * mg + epsilon);
            return Four{var - mom, mg, ms, mom};
          }),
      Training<ops::ResourceApplyFtrl, ops::ResourceSparseApplyFtrl>(
          +[](V var, V accum, V linear, V grad, V lr, V l1, V l2, V lr_power,
              bool multiply_linear_by_lr) {
            return Ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power,
                        multiply_linear_by_lr);
          },
          "multiply_linear_by_lr"),
      Training<ops::ResourceApplyFtrlV2, ops::ResourceSparseApplyFtrlV2>(
          +[](V var, V accum, V linear, V grad, V lr, V l1, V l2,
              V l2_shrinkage, V lr_power, bool multiply_linear_by_lr) {
            return Ftrl(var, accum, linear, grad, grad + 2 * l2_shrinkage * var,
                        lr, l1, l2, lr_power, multiply_linear_by_lr);
          },
          "multiply_linear_by_lr"),
      Training<ops::ResourceApplyAddSign>(
          +[](V var, V m, V lr, V alpha, V sign_decay, V beta, V grad) {
            m = m * beta + grad * (1 - beta);
            const V agree = Sign(grad) * Sign(m);
            return Two{var - lr * (alpha + sign_decay * agree) * grad, m};
          }),
      Training<ops::ResourceApplyPowerSign>(
          +[](V var, V m, V lr, V logbase, V sign_decay, V beta, V grad) {
            m = m * beta + grad * (1 - beta);
            const V agree = Sign(grad) * Sign(m);
            return Two{var - lr * Exp(logbase * sign_decay * agree) * grad, m};
          }),
  };
  return *table;
}

}  // namespace op_kernels_internal

// Registers the updates of optimizers: ResourceApply... and
// ResourceSparseApply..., each as one Map.
inline void TrainingOps(const Registrar& registrar) {
  using op_kernels_internal::TrainingOp;
  op_kernels_internal::training_table = &op_kernels_internal::TrainingTable();
  RegisterOp(NewValuesOp(kNewTrainingValuesOp));
  registrar.Add<op_kernels_internal::NewTrainingValuesKernel>(
      KernelDef(kNewTrainingValuesOp), "T", kFloatTypes);
  for (const TrainingOp& op : *op_kernels_internal::training_table) {
    for (const char* name : {op.name, op.sparse_name}) {
      if (name == nullptr) continue;
      kernel::UpdateOps().push_back(
          op_kernels_internal::UpdateOpOf(op, name == op.sparse_name));
      KernelDef def(name);
      for (size_t i = 0; i < op.num_variables; ++i) {
        def = std::move(def).HostMemory(op.variables[i]);
      }
      if (name == op.sparse_name) {
        def = std::move(def).TypeConstraint<int32_t, int64_t>("Tindices");
      }
      registrar.Add<op_kernels_internal::TrainingKernel>(std::move(def), "T",
                                                         kFloatTypes);
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_TRAINING_H_
