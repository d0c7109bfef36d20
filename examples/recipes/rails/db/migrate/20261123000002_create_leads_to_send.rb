class CreateLeadsToSend < ActiveRecord::Migration[6.1]
  def change
    create_table :leads_to_send do |table|
      table.string :idempotency_key, null: false, limit: 36, index: { unique: true }
      table.json :capture
      table.string :state, null: false, default: "waiting"
      table.integer :attempts, null: false, default: 0
      table.datetime :next_attempt_at, null: false
      table.datetime :paused_until
      table.string :reason
      table.boolean :needs_somebody
      table.string :lead_id, limit: 36
      table.timestamps
      table.index [:state, :next_attempt_at]
    end
  end
end
