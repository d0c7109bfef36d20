class CreateLeadsToSend < ActiveRecord::Migration[6.1]
  def change
    create_table :leads_to_send do |table|
      table.string :idempotency_key, null: false, limit: 36, index: { unique: true }
      table.json :capture
      table.string :state, null: false, default: "waiting"
      table.string :reason
      table.string :lead_id, limit: 36
      table.timestamps
      table.index [:state, :updated_at]
    end
  end
end
